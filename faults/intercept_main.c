/** The interposed begin of the program: where a fork server stands.

Top of the preload. The C library has set itself up and the constructors of all libraries have run;
the program's own, and its main, have not. */
#include <dlfcn.h>
#include <string.h>
#include <unistd.h>

#include "faults/adopt.h"
#include "faults/layer.h"
#include "faults/real.h"
#include "faults/serve.h"

typedef int main_t(int, char **, char **);
typedef void hook_t(void);
typedef int begin_t(main_t *, int, char **, main_t *, hook_t *, hook_t *, void *);

LAYER_EXPORT int __libc_start_main(main_t *program, int argc, char **argv, main_t *init,
                                   hook_t *fini, hook_t *rtld_fini, void *stack_end);

static void main_start(void)
{
    layer_start();
    adopt_inherited();
}

/* A fork server's children start it themselves, with what they were asked for. */
__attribute__((constructor)) static void main_construct(void)
{
    (void)real_get();
    if (!layer_is_server()) {
        main_start();
    }
}

LAYER_EXPORT int __libc_start_main(main_t *program, int argc, char **argv, main_t *init,
                                   hook_t *fini, hook_t *rtld_fini, void *stack_end)
{
    void *symbol = dlsym(RTLD_NEXT, "__libc_start_main");
    begin_t *begin;

    memcpy(&begin, &symbol, sizeof(symbol)); /* a data pointer and a code pointer do not convert */
    if (layer_is_server()) {
        serve_start_t start = serve_run(argc, argv);
        argc = start.argc;
        argv = start.argv;
        environ = start.env;
        main_start();
    }
    return begin(program, argc, argv, init, fini, rtld_fini, stack_end);
}
