/** The C library's own functions, found behind this library. Lowest layer of the preload. */
#ifndef FAULTS_REAL_H
#define FAULTS_REAL_H

#include <aio.h>
#include <dirent.h>
#include <fcntl.h>
#include <linux/aio_abi.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <sys/uio.h>

struct io_uring;
struct io_uring_params;

/** One row per function: result, name, parameters. On 64-bit Linux the plain and the "64" names
take the same types, so that one of each pair is enough. */
#define REAL_CALLS(X)                                                                              \
    X(int, open, (const char *, int, ...))                                                         \
    X(int, openat, (int, const char *, int, ...))                                                  \
    X(int, close, (int))                                                                           \
    X(int, close_range, (unsigned, unsigned, int))                                                 \
    X(void, closefrom, (int))                                                                      \
    X(int, dup, (int))                                                                             \
    X(int, dup2, (int, int))                                                                       \
    X(int, dup3, (int, int, int))                                                                  \
    X(int, fcntl, (int, int, ...))                                                                 \
    X(ssize_t, read, (int, void *, size_t))                                                        \
    X(ssize_t, readv, (int, const struct iovec *, int))                                            \
    X(ssize_t, pread, (int, void *, size_t, off_t))                                                \
    X(ssize_t, preadv, (int, const struct iovec *, int, off_t))                                    \
    X(ssize_t, preadv2, (int, const struct iovec *, int, off_t, int))                              \
    X(ssize_t, write, (int, const void *, size_t))                                                 \
    X(ssize_t, writev, (int, const struct iovec *, int))                                           \
    X(ssize_t, pwrite, (int, const void *, size_t, off_t))                                         \
    X(ssize_t, pwritev, (int, const struct iovec *, int, off_t))                                   \
    X(ssize_t, pwritev2, (int, const struct iovec *, int, off_t, int))                             \
    X(int, fsync, (int))                                                                           \
    X(int, fdatasync, (int))                                                                       \
    X(int, sync_file_range, (int, off_t, off_t, unsigned))                                         \
    X(int, syncfs, (int))                                                                          \
    X(void, sync, (void))                                                                          \
    X(int, ftruncate, (int, off_t))                                                                \
    X(int, truncate, (const char *, off_t))                                                        \
    X(int, fallocate, (int, int, off_t, off_t))                                                    \
    X(int, posix_fallocate, (int, off_t, off_t))                                                   \
    X(int, rename, (const char *, const char *))                                                   \
    X(int, renameat, (int, const char *, int, const char *))                                       \
    X(int, renameat2, (int, const char *, int, const char *, unsigned))                            \
    X(int, unlink, (const char *))                                                                 \
    X(int, unlinkat, (int, const char *, int))                                                     \
    X(int, rmdir, (const char *))                                                                  \
    X(int, remove, (const char *))                                                                 \
    X(int, mkdir, (const char *, mode_t))                                                          \
    X(int, mkdirat, (int, const char *, mode_t))                                                   \
    X(int, link, (const char *, const char *))                                                     \
    X(int, linkat, (int, const char *, int, const char *, int))                                    \
    X(ssize_t, copy_file_range, (int, off_t *, int, off_t *, size_t, unsigned))                    \
    X(ssize_t, sendfile, (int, int, off_t *, size_t))                                              \
    X(ssize_t, splice, (int, off_t *, int, off_t *, size_t, unsigned))                             \
    X(int, ioctl, (int, unsigned long, ...))                                                       \
    X(int, symlink, (const char *, const char *))                                                  \
    X(int, symlinkat, (const char *, int, const char *))                                           \
    X(int, mkostemps, (char *, int, int))                                                          \
    X(char *, mkdtemp, (char *))                                                                   \
    X(int, mprotect, (void *, size_t, int))                                                        \
    X(int, pkey_mprotect, (void *, size_t, int, int))                                              \
    X(ssize_t, recvmsg, (int, struct msghdr *, int))                                               \
    X(int, recvmmsg, (int, struct mmsghdr *, unsigned, int, struct timespec *))                    \
    X(int, open_by_handle_at, (int, struct file_handle *, int))                                    \
    X(int, lio_listio, (int, struct aiocb *const *, int, struct sigevent *))                       \
    X(int, lio_listio64, (int, struct aiocb64 *const *, int, struct sigevent *))                   \
    X(int, vdprintf, (int, const char *, va_list))                                                 \
    X(FILE *, fopen, (const char *, const char *))                                                 \
    X(FILE *, freopen, (const char *, const char *, FILE *))                                       \
    X(FILE *, fdopen, (int, const char *))                                                         \
    X(int, fclose, (FILE *))                                                                       \
    X(int, aio_write, (struct aiocb *))                                                            \
    X(int, aio_write64, (struct aiocb64 *))                                                        \
    X(int, aio_fsync, (int, struct aiocb *))                                                       \
    X(int, aio_fsync64, (int, struct aiocb64 *))                                                   \
    X(int, io_submit, (aio_context_t, long, struct iocb **))                                       \
    X(int, io_uring_queue_init, (unsigned, struct io_uring *, unsigned))                           \
    X(int, io_uring_queue_init_params, (unsigned, struct io_uring *, struct io_uring_params *))

typedef struct real_calls {
#define REAL_MEMBER(result, name, parameters) result(*name) parameters;
    REAL_CALLS(REAL_MEMBER)
#undef REAL_MEMBER
} real_calls_t;

/** The functions; resolved by the constructor, or by the first call if one comes earlier. A member
is NULL only if neither this C library nor another that the program has loaded has the function. */
const real_calls_t *real_get(void);

#endif
