/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* The module's memory comes from the allocator that the whole process has.
 *
 * From 8.1 on the server loads modules by RTLD_DEEPBIND: `malloc` and `free` of a module are those
 * of the C library, also where the program has jemalloc in their place. The C library calls jemalloc
 * there, and hands such memory to the module; AWS-LC allocates by `malloc`, and frees by jemalloc's
 * `sdallocx` where a process has it, which then crashes. These functions go before all others for
 * what is linked into the module, and are seen by nothing else. */
#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

static struct {
    void *(*malloc)(size_t size);
    void *(*calloc)(size_t count, size_t size);
    void *(*realloc)(void *memory, size_t size);
    int (*posix_memalign)(void **memory, size_t alignment, size_t size);
    void (*free)(void *memory);
} process;

/* Before the module's other constructors: nothing of it has memory by then. */
__attribute__((constructor(101))) static void find_process(void) {
    /* The program and its libraries, in the order in which the program itself looks for names. */
    void *program = dlopen(NULL, RTLD_NOW);
#define FIND(name)                                                                                 \
    do {                                                                                           \
        void *address = program ? dlsym(program, #name) : NULL;                                    \
        if (!address) abort();                                                                     \
        memcpy(&process.name, &address, sizeof(address));                                          \
    } while (0)
    FIND(malloc);
    FIND(calloc);
    FIND(realloc);
    FIND(posix_memalign);
    FIND(free);
}

void *malloc(size_t size) {
    return process.malloc(size);
}

void *calloc(size_t count, size_t size) {
    return process.calloc(count, size);
}

void *realloc(void *memory, size_t size) {
    return process.realloc(memory, size);
}

int posix_memalign(void **memory, size_t alignment, size_t size) {
    return process.posix_memalign(memory, alignment, size);
}

void *aligned_alloc(size_t alignment, size_t size) {
    void *memory = NULL;
    if (alignment < sizeof(void *)) alignment = sizeof(void *);
    errno = process.posix_memalign(&memory, alignment, size);
    return memory;
}

void free(void *memory) {
    process.free(memory);
}

void sdallocx(void *memory, size_t size, int flags) {
    (void)size, (void)flags;
    process.free(memory);
}
