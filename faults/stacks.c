/** Takes call stacks and keeps them as offsets in modules.

Above record.c; below layer.c, which says when. The log has the records of trace.h (TP_STACK_*).
1. A stack is taken before the lock, when its operation begins: threads do not wait for each other's
   stacks. It is stored under the lock, behind the record of its operation.
2. Frames come from the unwind tables (.eh_frame), by libgcc's unwinder: it is wherever threads
   can be cancelled, allocates nothing, and asks glibc (2.35 on) for a module without a lock. Frame
   pointers come where tables end, as in code of Go: that their chain is whole nobody can know,
   since a function without a frame is missing in it unseen.
3. Memory is read by the kernel on that way: a wrong pointer ends the stack, not the program.
4. No address is stored. A module is its build id and its path. A stack that this process has
   stored is not stored again; two processes may store the same.
5. An interpreter is asked by a call that needs none of its locks; it writes to a descriptor that
   does not exist, and the interposed write() hands the text here.
6. The first stack is taken at once: what the unwinder does once is done before main. */
#include "faults/stacks.h"

#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <link.h>
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>
#include <unwind.h>

#include "faults/hash.h"
#include "faults/io.h"

#define MODULES_MAX 16u
#define TEXT_BYTES 8192u
#define KNOWN_PLACES 8192u
#define BUILD_ID_BYTES 64u

#if defined(__x86_64__)
#define FRAME_POINTER 6
#elif defined(__aarch64__)
#define FRAME_POINTER 29
#endif

typedef struct module {
    const ElfW(Phdr) * headers; /* NULL: none; tells modules of this process apart */
    uint16_t n_headers;
    uintptr_t bias; /* address in memory less address in the file */
    const char *path;
    const uint8_t *id;
    size_t id_bytes;
} module_t;

/* What a thread has taken. */
typedef struct taken {
    uint32_t n_frames;
    uint32_t n_modules;
    uint32_t text_bytes;
    uint64_t began_ns; /* of the operation */
    bool listens;
    tp_stack_frame_t frames[TP_STACK_FRAMES_MAX]; /* module: place in `modules` plus one */
    module_t modules[MODULES_MAX];
    char text[TEXT_BYTES];
} taken_t;

/* Was stored under this number; another may have taken its place. */
typedef struct known {
    uint64_t hash;
    uint64_t number;
} known_t;

static struct {
    record_log_t log;
    pthread_key_t key; /* frees what a thread has taken */
    const ElfW(Phdr) * own;
    known_t *known;
    char program[PATH_MAX];
    __typeof__(_Unwind_Backtrace) *backtrace;
    __typeof__(_Unwind_GetIPInfo) *ip_of;
    __typeof__(_Unwind_GetGR) *register_of;
#ifdef DLFO_STRUCT_HAS_EH_DBASE
    __typeof__(_dl_find_object) *find_object; /* NULL: this C library has none */
#endif
    void *(*interpreter_state)(void);
    void (*interpreter_tell)(int, void *);
} stacks;

static _Thread_local taken_t *stacks_taken;

static void stacks_find(void *function, void *library, const char *name)
{
    void *symbol = dlsym(library, name);

    memcpy(function, &symbol, sizeof(symbol)); /* a data and a code pointer do not convert */
}

/* ---- modules ---- */

static bool module_holds(const module_t *module, uintptr_t pc)
{
    for (uint16_t i = 0; i < module->n_headers; i++) {
        const ElfW(Phdr) *part = &module->headers[i];
        if (part->p_type == PT_LOAD && pc - module->bias - part->p_vaddr < part->p_memsz) {
            return true;
        }
    }
    return false;
}

typedef struct wanted {
    uintptr_t pc;
    module_t *module;
} wanted_t;

static int module_look(struct dl_phdr_info *info, size_t size, void *to)
{
    const wanted_t *wanted = to;
    module_t found = {.headers = info->dlpi_phdr,
                      .n_headers = info->dlpi_phnum,
                      .bias = info->dlpi_addr,
                      .path = info->dlpi_name};

    (void)size;
    if (!module_holds(&found, wanted->pc)) {
        return 0;
    }
    *wanted->module = found;
    return 1;
}

#ifdef DLFO_STRUCT_HAS_EH_DBASE
/* Without the loader's lock. */
static bool module_find(uintptr_t pc, module_t *module)
{
    struct dl_find_object found;

    if (stacks.find_object((void *)pc, &found) != 0) {
        return false;
    }
    const ElfW(Ehdr) *file = found.dlfo_map_start;
    if (memcmp(file->e_ident, ELFMAG, SELFMAG) != 0) {
        return false;
    }
    *module = (module_t){.headers = (const void *)((const uint8_t *)file + file->e_phoff),
                         .n_headers = file->e_phnum,
                         .bias = found.dlfo_link_map->l_addr,
                         .path = found.dlfo_link_map->l_name};
    return true;
}
#endif

static bool module_of(uintptr_t pc, module_t *module)
{
#ifdef DLFO_STRUCT_HAS_EH_DBASE
    if (stacks.find_object != NULL) {
        return module_find(pc, module);
    }
#endif
    return dl_iterate_phdr(module_look, &(wanted_t){pc, module}) != 0;
}

static size_t note_padded(size_t bytes)
{
    return (bytes + 3) / 4 * 4;
}

static void module_find_id(module_t *module, const ElfW(Phdr) * part)
{
    const uint8_t *at = (const uint8_t *)module->bias + part->p_vaddr;
    const uint8_t *end = at + part->p_memsz;

    while ((size_t)(end - at) > sizeof(ElfW(Nhdr))) {
        const ElfW(Nhdr) *note = (const void *)at;
        const uint8_t *name = at + sizeof(*note);
        const uint8_t *text = name + note_padded(note->n_namesz);
        if (note->n_type == NT_GNU_BUILD_ID && note->n_namesz == 4 && memcmp(name, "GNU", 4) == 0
            && note->n_descsz <= BUILD_ID_BYTES) {
            module->id = text;
            module->id_bytes = note->n_descsz;
            return;
        }
        at = text + note_padded(note->n_descsz);
    }
}

static void module_describe(module_t *module)
{
    if (module->path == NULL || module->path[0] == '\0') {
        module->path = stacks.program;
    }
    for (uint16_t i = 0; i < module->n_headers && module->id_bytes == 0; i++) {
        if (module->headers[i].p_type == PT_NOTE) {
            module_find_id(module, &module->headers[i]);
        }
    }
}

/* ---- taking ---- */

/* Its place plus one; 0: no module, or one too many. */
static uint32_t taken_module(taken_t *taken, uintptr_t pc)
{
    for (uint32_t i = taken->n_modules; i > 0; i--) {
        if (module_holds(&taken->modules[i - 1], pc)) {
            return i;
        }
    }
    if (taken->n_modules == MODULES_MAX || !module_of(pc, &taken->modules[taken->n_modules])) {
        return 0;
    }
    module_describe(&taken->modules[taken->n_modules]);
    return ++taken->n_modules;
}

/* pc: of the instruction that called. Frames of this library are left out. False: no module holds
it. */
static bool taken_add(taken_t *taken, uintptr_t pc)
{
    uint32_t place = taken_module(taken, pc);
    const module_t *module = place == 0 ? NULL : &taken->modules[place - 1];

    if (module == NULL || module->headers != stacks.own) {
        taken->frames[taken->n_frames++] =
            (tp_stack_frame_t){place, module == NULL ? 0 : pc - module->bias};
    }
    return module != NULL;
}

static bool taken_is_full(const taken_t *taken)
{
    return taken->n_frames == TP_STACK_FRAMES_MAX;
}

typedef struct walk {
    taken_t *taken;
    uintptr_t frame; /* the frame pointer */
    bool ended;      /* at the thread's first function, or for want of room */
} walk_t;

static _Unwind_Reason_Code walk_step(struct _Unwind_Context *context, void *to)
{
    walk_t *walk = to;
    int before = 0;
    uintptr_t pc = stacks.ip_of(context, &before);

    if (pc == 0) {
        walk->ended = true;
        return _URC_NORMAL_STOP;
    }
#ifdef FRAME_POINTER
    walk->frame = stacks.register_of(context, FRAME_POINTER);
#endif
    (void)taken_add(walk->taken, before != 0 ? pc : pc - 1);
    walk->ended = taken_is_full(walk->taken);
    return walk->ended ? _URC_NORMAL_STOP : _URC_NO_REASON;
}

/* Where no table told of the last frame. */
static void walk_pointers(walk_t *walk)
{
    uintptr_t words[2]; /* the caller's frame pointer, the return address */
    struct iovec to = {words, sizeof(words)};

    while (!taken_is_full(walk->taken) && walk->frame % sizeof(uintptr_t) == 0) {
        struct iovec from = {(void *)walk->frame, sizeof(words)};
        if (process_vm_readv(getpid(), &to, 1, &from, 1, 0) != (ssize_t)sizeof(words)
            || words[1] == 0 || !taken_add(walk->taken, words[1] - 1)) {
            return;
        }
        walk->frame = words[0];
    }
}

static void taken_ask_interpreter(taken_t *taken)
{
    if (stacks.interpreter_tell == NULL || stacks.interpreter_state == NULL) {
        return;
    }
    void *state = stacks.interpreter_state();
    if (state != NULL) {
        taken->listens = true;
        stacks.interpreter_tell(STACKS_DESCRIPTOR, state);
        taken->listens = false;
    }
}

/* Monotonic. */
static uint64_t now_ns(void)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000U + (uint64_t)now.tv_nsec;
}

void stacks_take(void)
{
    if (stacks.log.header == NULL) {
        return;
    }
    if (stacks_taken == NULL) {
        stacks_taken = io_map_memory(sizeof(*stacks_taken));
        (void)pthread_setspecific(stacks.key, stacks_taken);
    }
    taken_t *taken = stacks_taken;
    if (taken == NULL) {
        return;
    }
    taken->n_frames = taken->n_modules = taken->text_bytes = 0;
    walk_t walk = {.taken = taken};
    (void)stacks.backtrace(walk_step, &walk);
    if (!walk.ended) {
        walk_pointers(&walk);
    }
    taken_ask_interpreter(taken);
    taken->began_ns = now_ns();
}

void stacks_drop(void)
{
    if (stacks_taken != NULL) {
        stacks_taken->n_frames = 0;
    }
}

bool stacks_hear(const void *data, size_t bytes)
{
    taken_t *taken = stacks_taken;

    if (taken == NULL || !taken->listens) {
        return false;
    }
    size_t room = TEXT_BYTES - taken->text_bytes;
    size_t heard = bytes < room ? bytes : room;
    memcpy(taken->text + taken->text_bytes, data, heard);
    taken->text_bytes += (uint32_t)heard;
    return true;
}

static void stacks_free(void *taken)
{
    (void)munmap(taken, sizeof(taken_t));
    stacks_taken = NULL;
}

/* ---- storing: under the lock ---- */

/* The number of the record with this payload, which is appended if it is not known. */
static uint64_t stacks_store(record_op_t *op, const struct iovec *parts, int count)
{
    uint64_t bytes = 0;
    for (int i = 0; i < count; i++) {
        bytes += parts[i].iov_len;
    }
    op->hash = hash_buffers(parts, count, bytes);
    known_t *known = &stacks.known[op->hash % KNOWN_PLACES];
    if (known->number == 0 || known->hash != op->hash) {
        record_append(&stacks.log, op, parts, bytes);
        *known = (known_t){op->hash, record_ticket(&stacks.log)};
    }
    return known->number;
}

static uint64_t stacks_store_module(const module_t *module)
{
    record_op_t op = {.kind = TP_STACK_MODULE, .length = module->id_bytes};
    struct iovec parts[] = {{(void *)(uintptr_t)module->id, module->id_bytes},
                            {(void *)(uintptr_t)module->path, strlen(module->path)}};

    return stacks_store(&op, parts, 2);
}

static uint64_t stacks_store_frames(const taken_t *taken)
{
    uint64_t numbers[MODULES_MAX + 1] = {0};
    tp_stack_frame_t frames[TP_STACK_FRAMES_MAX];

    for (uint32_t i = 0; i < taken->n_frames; i++) {
        uint64_t place = taken->frames[i].module;
        if (place > 0 && numbers[place] == 0) {
            numbers[place] = stacks_store_module(&taken->modules[place - 1]);
        }
        frames[i] = (tp_stack_frame_t){numbers[place], taken->frames[i].offset};
    }
    record_op_t op = {
        .kind = TP_STACK_FRAMES, .offset = taken->text_bytes, .length = taken->n_frames};
    struct iovec parts[] = {{frames, taken->n_frames * sizeof(frames[0])},
                            {(void *)(uintptr_t)taken->text, taken->text_bytes}};
    return stacks_store(&op, parts, 2);
}

static void stacks_told(const tp_trace_record_t *record)
{
    const taken_t *taken = stacks_taken;

    if (taken == NULL || taken->n_frames == 0 || record->kind == TP_OP_MARK) {
        return;
    }
    uint64_t number = stacks_store_frames(taken);
    record_op_t of = {.kind = TP_STACK_OF,
                      .thread = record->thread,
                      .offset = record->seq,
                      .length = number,
                      .result = (int64_t)taken->began_ns,
                      .hash = now_ns()};
    record_append(&stacks.log, &of, NULL, 0);
}

bool stacks_are_taken(void)
{
    return stacks.log.header != NULL;
}

void stacks_note(uint64_t event, const char *text, size_t bytes)
{
    const taken_t *taken = stacks_taken;

    if (taken == NULL || taken->n_frames == 0) {
        return;
    }
    record_op_t op = {.kind = TP_STACK_NOTE, .offset = event, .length = stacks_store_frames(taken)};
    struct iovec part = {(void *)(uintptr_t)text, bytes};
    record_append(&stacks.log, &op, &part, bytes);
}

void stacks_recover(void)
{
    record_recover(&stacks.log);
}

/* ---- set-up ---- */

static bool stacks_find_unwinder(void)
{
    void *unwinder = dlopen("libgcc_s.so.1", RTLD_NOW | RTLD_LOCAL);

    if (unwinder == NULL) {
        return false;
    }
    stacks_find(&stacks.backtrace, unwinder, "_Unwind_Backtrace");
    stacks_find(&stacks.ip_of, unwinder, "_Unwind_GetIPInfo");
    stacks_find(&stacks.register_of, unwinder, "_Unwind_GetGR");
#ifdef DLFO_STRUCT_HAS_EH_DBASE
    stacks_find(&stacks.find_object, RTLD_DEFAULT, "_dl_find_object");
#endif
    stacks_find(&stacks.interpreter_state, RTLD_DEFAULT, "PyGILState_GetThisThreadState");
    stacks_find(&stacks.interpreter_tell, RTLD_DEFAULT, "_Py_DumpTraceback");
    return stacks.backtrace != NULL && stacks.ip_of != NULL && stacks.register_of != NULL;
}

int stacks_open(const char *path, size_t size_bytes, bool attach, record_log_t *trace)
{
    module_t own;
    ssize_t len = readlink("/proc/self/exe", stacks.program, sizeof(stacks.program) - 1);

    stacks.program[len < 0 ? 0 : len] = '\0';
    if (!stacks_find_unwinder() || !module_of((uintptr_t)&stacks_open, &own)) {
        return ENOSYS;
    }
    stacks.own = own.headers;
    stacks.known = io_map_memory(KNOWN_PLACES * sizeof(*stacks.known));
    if (stacks.known == NULL || pthread_key_create(&stacks.key, stacks_free) != 0) {
        return ENOMEM;
    }
    int failure = record_open(&stacks.log, TP_STACKS_MAGIC, path, size_bytes, attach, NULL);
    if (failure != 0) {
        return failure;
    }
    stacks_take();
    stacks_drop();
    trace->told = stacks_told;
    return 0;
}
