/** Writes to the file "f" by ways whose functions the tests know: from main, from a thread, in a
forked child, in a signal handler, below a function of a library that is loaded late. Built with
unwind tables and without frame pointers, and the other way round. */
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#if __has_attribute(noclone)
#define KEPT __attribute__((noinline, noclone))
#else
#define KEPT __attribute__((noinline))
#endif

typedef void write_t(int fd);
typedef void library_t(write_t *write, int fd);

void stack_inner(int fd);
void stack_outer(int fd);
void *stack_thread(void *fd);
void stack_handler(int number);
void stack_forked(int fd);
void stack_by_library(int fd, const char *path);
void stack_note(void);

static volatile int written; /* what follows a call keeps it from being a jump */
static int file;

KEPT void stack_inner(int fd)
{
    if (pwrite(fd, "data", 4, 0) != 4) {
        exit(1);
    }
    written++;
}

KEPT void stack_outer(int fd)
{
    stack_inner(fd);
    written++;
}

KEPT void *stack_thread(void *fd)
{
    stack_outer(*(int *)fd);
    written++;
    return NULL;
}

KEPT void stack_handler(int number)
{
    (void)number;
    stack_outer(file);
    written++;
}

KEPT void stack_forked(int fd)
{
    pid_t child = fork();
    int status = 0;

    if (child == 0) {
        stack_outer(fd);
        _exit(0);
    }
    if (waitpid(child, &status, 0) != child || status != 0) {
        exit(2);
    }
}

KEPT void stack_by_library(int fd, const char *path)
{
    void *library = dlopen(path, RTLD_NOW);
    void *symbol = library == NULL ? NULL : dlsym(library, "stack_library");
    library_t *call = NULL;

    memcpy(&call, &symbol, sizeof(call));
    if (call == NULL) {
        exit(3);
    }
    call(stack_inner, fd);
    (void)dlclose(library);
}

KEPT void stack_note(void)
{
    void *symbol = dlsym(RTLD_DEFAULT, "tp_stack_note");
    bool (*note)(const char *text, size_t len) = NULL;

    memcpy(&note, &symbol, sizeof(note));
    if (note != NULL && note("", 0)) {
        written += note("step n=1", 8);
    }
}

int main(int argc, char **argv)
{
    pthread_t thread;

    file = open("f", O_RDWR | O_CREAT, 0644);
    stack_outer(file);
    if (pthread_create(&thread, NULL, stack_thread, &file) != 0
        || pthread_join(thread, NULL) != 0) {
        return 4;
    }
    (void)signal(SIGUSR1, stack_handler);
    (void)raise(SIGUSR1);
    stack_note();
    stack_forked(file);
    for (int i = 1; i < argc; i++) {
        stack_by_library(file, argv[i]);
    }
    return 0;
}
