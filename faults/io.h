/** One read or write as the program called it, whatever the function. */
#ifndef FAULTS_IO_H
#define FAULTS_IO_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/uio.h>

typedef enum io_via {
    IO_PLAIN,          /**< read, write */
    IO_VECTOR,         /**< readv, writev */
    IO_AT,             /**< pread, pwrite */
    IO_VECTOR_AT,      /**< preadv, pwritev */
    IO_VECTOR_AT_FLAGS /**< preadv2, pwritev2 */
} io_via_t;

typedef struct io_call {
    io_via_t via;
    int fd;
    const struct iovec *parts; /**< one element for the functions that take a buffer */
    int count;
    off_t offset;
    int flags;
} io_call_t;

#define IO_PAGE_BYTES ((uint64_t)4096)

/** Rounded up to pages of memory. */
static inline uint64_t io_whole_pages(uint64_t bytes)
{
    return (bytes + IO_PAGE_BYTES - 1) / IO_PAGE_BYTES * IO_PAGE_BYTES;
}

/** The same write from memory of its own. */
typedef struct io_copy {
    io_call_t call;
    void *map;
    size_t bytes;
} io_copy_t;

/** Copies what is to be written; each part lies as far behind the start of a page as the program's
does. False: no memory. */
bool io_copy_take(io_copy_t *copy, const io_call_t *call);
void io_copy_release(io_copy_t *copy);

/** Makes the call itself. */
ssize_t io_read_real(const io_call_t *call);
ssize_t io_write_real(const io_call_t *call);

/** The number of bytes asked for. */
uint64_t io_length(const io_call_t *call);

/** The call uses and moves the position of the open file. */
bool io_is_sequential(const io_call_t *call);

/** Positioned transfer of all bytes with the real functions; false with errno on failure, for
io_read_at also at the end of the file, with *done bytes transferred. */
bool io_read_at(int fd, uint8_t *data, uint64_t bytes, uint64_t offset, uint64_t *done);
bool io_write_at(int fd, const uint8_t *data, uint64_t bytes, uint64_t offset);

/** Zeroed memory that is not the program's heap; NULL if there is none. Given back with munmap. */
void *io_map_memory(size_t bytes);

#endif
