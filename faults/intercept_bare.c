/** Interposed ways around the C library's calls: syscall(), io_uring, libaio, POSIX aio.

Top of the preload. Nothing of it is followed: a call that may change or sync a tracked file, or of which nobody can tell
what it does, leaves a mark "unseen" and then happens. Before it, so that no state behind it is trusted.
1. syscall() with a path is left to the admission test: what it changes is a difference.
2. liburing and libaio are those that the program was linked with; one that is loaded later is told that the kernel has no such
   call. */
#include <aio.h>
#include <errno.h>
#include <linux/aio_abi.h>
#include <stdarg.h>
#include <sys/syscall.h>
#include <unistd.h>

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

#ifdef RAW_CALLS
/* Those whose first word is the descriptor that they change or sync. */
static const char *bare_name(long number)
{
    static const struct {
        long number;
        const char *name;
    } NAMES[] = {
        {SYS_write, "syscall(write)"},         {SYS_pwrite64, "syscall(pwrite)"},
        {SYS_writev, "syscall(writev)"},       {SYS_pwritev, "syscall(pwritev)"},
        {SYS_pwritev2, "syscall(pwritev2)"},   {SYS_fsync, "syscall(fsync)"},
        {SYS_fdatasync, "syscall(fdatasync)"}, {SYS_ftruncate, "syscall(ftruncate)"},
        {SYS_fallocate, "syscall(fallocate)"}, {SYS_sync_file_range, "syscall(sync_file_range)"},
    };

    for (size_t i = 0; i < sizeof(NAMES) / sizeof(NAMES[0]); i++) {
        if (NAMES[i].number == number) {
            return NAMES[i].name;
        }
    }
    return NULL;
}

LAYER_EXPORT long syscall(long number, ...)
{
    const char *name;
    long words[6];
    long result;
    va_list args;

    va_start(args, number);
    for (int i = 0; i < 6; i++) {
        words[i] = va_arg(args, long);
    }
    va_end(args);
    name = bare_name(number);
    if (name != NULL) {
        unseen_at_descriptor(name, (int)words[0]);
    }
    result = raw_call(number, words);
    if (result < 0 && result >= -4095) {
        errno = (int)-result;
        return -1;
    }
    if (number == SYS_io_uring_setup) {
        unseen_anywhere("io_uring");
    }
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
    for (long i = 0; i < count; i++) {
        if (calls[i]->aio_lio_opcode != IOCB_CMD_PREAD
            && calls[i]->aio_lio_opcode != IOCB_CMD_PREADV) {
            unseen_at_descriptor("io_submit", (int)calls[i]->aio_fildes);
        }
    }
    return real_get()->io_submit == NULL ? -ENOSYS : real_get()->io_submit(context, count, calls);
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
