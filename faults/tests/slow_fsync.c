/** An fsync that takes as long as the test wants: it writes a byte to descriptor 200 when it is
under way, and returns after one has come from 201. Loaded behind the preload, which takes it for
the C library's. And a sleep that takes no time, and appends its nanoseconds to a file. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

int fsync(int fd)
{
    char byte = 'x';

    return fd >= 0 && write(200, &byte, 1) == 1 && read(201, &byte, 1) == 1 ? 0 : -1;
}

int nanosleep(const struct timespec *time, struct timespec *left)
{
    const char *path = getenv("TORNPAGE_TEST_SLEEPS");
    int fd = path != NULL ? open(path, O_WRONLY | O_CREAT | O_APPEND, 0600) : -1;
    (void)left;
    if (fd >= 0) {
        (void)dprintf(fd, "%ld\n", time->tv_nsec);
        (void)close(fd);
    }
    return 0;
}
