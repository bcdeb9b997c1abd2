/** Calls that give a descriptor's number away and return late: when the number is free, or another
file's, they write a byte to descriptor 200, and return after one has come from 201, or after a
tenth of a second: a preload that lets nobody use the number meanwhile lets no byte come. Loaded
behind the preload, which takes them for the C library's. */
#include <dlfcn.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define LATE_MS 100

static long late(long result)
{
    struct pollfd finish = {.fd = 201, .events = POLLIN};
    char byte = 'x';

    if (write(200, &byte, 1) == 1 && poll(&finish, 1, LATE_MS) == 1) {
        (void)!read(201, &byte, 1);
    }
    return result;
}

int close(int fd)
{
    return (int)late(syscall(SYS_close, fd));
}

int close_range(unsigned first, unsigned last, int flags)
{
    return (int)late(syscall(SYS_close_range, first, last, flags));
}

int dup2(int fd, int copy)
{
    return (int)late(syscall(SYS_dup3, fd, copy, 0));
}

int dup3(int fd, int copy, int flags)
{
    return (int)late(syscall(SYS_dup3, fd, copy, flags));
}

int fclose(FILE *stream)
{
    int (*real)(FILE *) = NULL;
    void *symbol = dlsym(RTLD_NEXT, "fclose");

    memcpy(&real, &symbol, sizeof(real));
    return (int)late(real(stream));
}
