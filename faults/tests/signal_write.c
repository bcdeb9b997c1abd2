/** A pwrite behind the first 4096 bytes of a file that raises the signal TORNPAGE_TEST_SIGNAL, a
number, as soon as its bytes are in the file. Loaded behind the preload, which takes it for the C
library's. */
#include <signal.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

ssize_t pwrite(int fd, const void *data, size_t bytes, off_t offset)
{
    ssize_t done = syscall(SYS_pwrite64, fd, data, bytes, offset);
    const char *number = getenv("TORNPAGE_TEST_SIGNAL");

    if (offset >= 4096 && number != NULL) {
        (void)raise((int)strtol(number, NULL, 10));
    }
    return done;
}
