/** Interposed ways around the C library's calls: syscall(), io_uring, libaio, POSIX aio.

Top of the preload.
1. syscall() with a call that the C library has a function for is that function.
2. Of the others a call that may change or sync a tracked file, or of which nobody can tell what it
   does, leaves a mark "unseen" and then happens. Before it, so that no state behind it is trusted.
3. liburing and libaio are those that the program was linked with; one that is loaded later is told
   that the kernel has no such call. */
#include <aio.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/aio_abi.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "faults/adopt.h"
#include "faults/layer.h"
#include "faults/raw.h"
#include "faults/real.h"
#include "faults/unseen.h"

struct io_uring;
struct io_uring_params;

/* No header of ours declares them. */
LAYER_EXPORT int io_uring_queue_init(unsigned entries, struct io_uring *ring, unsigned flags);
LAYER_EXPORT int io_uring_queue_init_params(unsigned entries, struct io_uring *ring,
                                            struct io_uring_params *params);
LAYER_EXPORT int io_submit(aio_context_t context, long count, struct iocb **calls);

static void bare_see_submit(long count, struct iocb *const *calls)
{
    for (long i = 0; i < count; i++) {
        if (calls[i]->aio_lio_opcode != IOCB_CMD_PREAD
            && calls[i]->aio_lio_opcode != IOCB_CMD_PREADV) {
            unseen_at_descriptor("io_submit", (int)calls[i]->aio_fildes);
        }
    }
}

#ifdef RAW_CALLS
#define POINTER(word) ((void *)(uintptr_t)(word))

/* Those of a descriptor's contents. False: none of them. */
static bool bare_data(long number, const long *w, long *result)
{
    int fd = (int)w[0];

    switch (number) {
    case SYS_write:
        *result = write(fd, POINTER(w[1]), (size_t)w[2]);
        return true;
    case SYS_pwrite64:
        *result = pwrite(fd, POINTER(w[1]), (size_t)w[2], w[3]);
        return true;
    case SYS_writev:
        *result = writev(fd, POINTER(w[1]), (int)w[2]);
        return true;
    case SYS_pwritev:
        *result = pwritev(fd, POINTER(w[1]), (int)w[2], w[3]);
        return true;
    case SYS_pwritev2:
        *result = pwritev2(fd, POINTER(w[1]), (int)w[2], w[3], (int)w[5]);
        return true;
    case SYS_copy_file_range:
        *result = copy_file_range(fd, POINTER(w[1]), (int)w[2], POINTER(w[3]), (size_t)w[4],
                                  (unsigned)w[5]);
        return true;
    case SYS_sendfile:
        *result = sendfile(fd, (int)w[1], POINTER(w[2]), (size_t)w[3]);
        return true;
    case SYS_splice:
        *result = splice(fd, POINTER(w[1]), (int)w[2], POINTER(w[3]), (size_t)w[4], (unsigned)w[5]);
        return true;
    case SYS_fsync:
        *result = fsync(fd);
        return true;
    case SYS_fdatasync:
        *result = fdatasync(fd);
        return true;
    case SYS_sync_file_range:
        *result = sync_file_range(fd, w[1], w[2], (unsigned)w[3]);
        return true;
    case SYS_ftruncate:
        *result = ftruncate(fd, w[1]);
        return true;
    case SYS_fallocate:
        *result = fallocate(fd, (int)w[1], w[2], w[3]);
        return true;
    default:
        return false;
    }
}

/* Those of descriptors, mappings and names. */
static bool bare_other(long number, const long *w, long *result)
{
    switch (number) {
    case SYS_openat:
        *result = openat((int)w[0], POINTER(w[1]), (int)w[2], (mode_t)w[3]);
        return true;
    case SYS_close:
        *result = close((int)w[0]);
        return true;
    case SYS_close_range:
        *result = close_range((unsigned)w[0], (unsigned)w[1], (int)w[2]);
        return true;
    case SYS_dup:
        *result = dup((int)w[0]);
        return true;
    case SYS_dup3:
        *result = dup3((int)w[0], (int)w[1], (int)w[2]);
        return true;
    case SYS_fcntl:
        *result = fcntl((int)w[0], (int)w[1], POINTER(w[2]));
        return true;
    case SYS_mmap:
        *result = (long)(uintptr_t)mmap(POINTER(w[0]), (size_t)w[1], (int)w[2], (int)w[3],
                                        (int)w[4], w[5]);
        return true;
    case SYS_mprotect:
        *result = mprotect(POINTER(w[0]), (size_t)w[1], (int)w[2]);
        return true;
    case SYS_pkey_mprotect:
        *result = pkey_mprotect(POINTER(w[0]), (size_t)w[1], (int)w[2], (int)w[3]);
        return true;
    case SYS_renameat2:
        *result = renameat2((int)w[0], POINTER(w[1]), (int)w[2], POINTER(w[3]), (unsigned)w[4]);
        return true;
    case SYS_unlinkat:
        *result = unlinkat((int)w[0], POINTER(w[1]), (int)w[2]);
        return true;
    case SYS_linkat:
        *result = linkat((int)w[0], POINTER(w[1]), (int)w[2], POINTER(w[3]), (int)w[4]);
        return true;
    case SYS_symlinkat:
        *result = symlinkat(POINTER(w[0]), (int)w[1], POINTER(w[2]));
        return true;
    case SYS_mkdirat:
        *result = mkdirat((int)w[0], POINTER(w[1]), (mode_t)w[2]);
        return true;
    case SYS_truncate:
        *result = truncate(POINTER(w[0]), w[1]);
        return true;
    case SYS_syncfs:
        *result = syncfs((int)w[0]);
        return true;
    case SYS_ioctl:
        *result = ioctl((int)w[0], (unsigned long)w[1], POINTER(w[2]));
        return true;
    default:
        return false;
    }
}

#ifdef SYS_rename
/* What newer machines have no number for. */
static bool bare_old(long number, const long *w, long *result)
{
    switch (number) {
    case SYS_open:
        *result = open(POINTER(w[0]), (int)w[1], (mode_t)w[2]);
        return true;
    case SYS_creat:
        *result = creat(POINTER(w[0]), (mode_t)w[1]);
        return true;
    case SYS_dup2:
        *result = dup2((int)w[0], (int)w[1]);
        return true;
    case SYS_rename:
        *result = rename(POINTER(w[0]), POINTER(w[1]));
        return true;
    case SYS_renameat:
        *result = renameat((int)w[0], POINTER(w[1]), (int)w[2], POINTER(w[3]));
        return true;
    case SYS_unlink:
        *result = unlink(POINTER(w[0]));
        return true;
    case SYS_rmdir:
        *result = rmdir(POINTER(w[0]));
        return true;
    case SYS_link:
        *result = link(POINTER(w[0]), POINTER(w[1]));
        return true;
    case SYS_symlink:
        *result = symlink(POINTER(w[0]), POINTER(w[1]));
        return true;
    case SYS_mkdir:
        *result = mkdir(POINTER(w[0]), (mode_t)w[1]);
        return true;
    default:
        return false;
    }
}
#else
static bool bare_old(long number, const long *w, long *result)
{
    (void)number;
    (void)w;
    (void)result;
    return false;
}
#endif

/* What is here under a number that gives a descriptor or a ring, and cannot be foreseen. */
static void bare_made(long number, long result)
{
    switch (number) {
    case SYS_io_uring_setup:
        unseen_anywhere("io_uring");
        break;
    case SYS_openat2:
        adopt_descriptor("syscall(openat2)", (int)result);
        break;
    case SYS_pidfd_getfd:
        adopt_descriptor("pidfd_getfd", (int)result);
        break;
    default:
        break;
    }
}

/* A library below this one may make its calls by syscall(): not once more, then. */
static _Thread_local bool bare_inside;

static bool bare_followed(long number, const long *words, long *result)
{
    bool followed;

    if (bare_inside || !layer_is_on()) {
        return false;
    }
    bare_inside = true;
    followed = bare_data(number, words, result) || bare_other(number, words, result)
               || bare_old(number, words, result);
    bare_inside = false;
    return followed;
}

LAYER_EXPORT long syscall(long number, ...)
{
    long words[6];
    long result;
    va_list args;

    va_start(args, number);
    for (int i = 0; i < 6; i++) {
        words[i] = va_arg(args, long);
    }
    va_end(args);
    if (bare_followed(number, words, &result)) {
        return result;
    }
    if (number == SYS_io_submit) {
        bare_see_submit(words[1], POINTER(words[2]));
    }
    result = raw_call(number, words);
    if (result < 0 && result >= -4095) {
        errno = (int)-result;
        return -1;
    }
    bare_made(number, result);
    return result;
}
#endif

/* A ring that could not be made changes nothing. */
static int uring_made(int result)
{
    if (result >= 0) {
        unseen_anywhere("io_uring");
    }
    return result;
}

LAYER_EXPORT int io_uring_queue_init(unsigned entries, struct io_uring *ring, unsigned flags)
{
    const real_calls_t *real = real_get();

    return real->io_uring_queue_init == NULL
               ? -ENOSYS
               : uring_made(real->io_uring_queue_init(entries, ring, flags));
}

LAYER_EXPORT int io_uring_queue_init_params(unsigned entries, struct io_uring *ring,
                                            struct io_uring_params *params)
{
    const real_calls_t *real = real_get();

    return real->io_uring_queue_init_params == NULL
               ? -ENOSYS
               : uring_made(real->io_uring_queue_init_params(entries, ring, params));
}

LAYER_EXPORT int io_submit(aio_context_t context, long count, struct iocb **calls)
{
    bare_see_submit(count, calls);
    return real_get()->io_submit == NULL ? -ENOSYS : real_get()->io_submit(context, count, calls);
}

LAYER_EXPORT int lio_listio(int mode, struct aiocb *const calls[], int count,
                            struct sigevent *event)
{
    for (int i = 0; i < count; i++) {
        if (calls[i] != NULL && calls[i]->aio_lio_opcode == LIO_WRITE) {
            unseen_at_descriptor("lio_listio", calls[i]->aio_fildes);
        }
    }
    return real_get()->lio_listio(mode, calls, count, event);
}

LAYER_EXPORT int lio_listio64(int mode, struct aiocb64 *const calls[], int count,
                              struct sigevent *event)
{
    for (int i = 0; i < count; i++) {
        if (calls[i] != NULL && calls[i]->aio_lio_opcode == LIO_WRITE) {
            unseen_at_descriptor("lio_listio", calls[i]->aio_fildes);
        }
    }
    return real_get()->lio_listio64(mode, calls, count, event);
}

LAYER_EXPORT int aio_write(struct aiocb *call)
{
    unseen_at_descriptor("aio_write", call->aio_fildes);
    return real_get()->aio_write(call);
}

LAYER_EXPORT int aio_write64(struct aiocb64 *call)
{
    unseen_at_descriptor("aio_write", call->aio_fildes);
    return real_get()->aio_write64(call);
}

LAYER_EXPORT int aio_fsync(int operation, struct aiocb *call)
{
    unseen_at_descriptor("aio_fsync", call->aio_fildes);
    return real_get()->aio_fsync(operation, call);
}

LAYER_EXPORT int aio_fsync64(int operation, struct aiocb64 *call)
{
    unseen_at_descriptor("aio_fsync", call->aio_fildes);
    return real_get()->aio_fsync64(operation, call);
}
