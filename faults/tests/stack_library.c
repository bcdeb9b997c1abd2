/** A library of stack_program.c. */
void stack_library(void (*write)(int), int fd);

static volatile int called;

void stack_library(void (*write)(int), int fd)
{
    write(fd);
    called++;
}
