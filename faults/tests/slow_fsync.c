/** An fsync that takes as long as the test wants: it writes a byte to descriptor 200 when it is
under way, and returns after one has come from 201. Loaded behind the preload, which takes it for
the C library's. */
#include <unistd.h>

int fsync(int fd)
{
    char byte = 'x';

    return fd >= 0 && write(200, &byte, 1) == 1 && read(201, &byte, 1) == 1 ? 0 : -1;
}
