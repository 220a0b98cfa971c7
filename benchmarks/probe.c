/* Counts that need C: what Python asks its allocator for, and marks for callgrind. Loaded by probe.py. */
#include <stddef.h>
#include <valgrind/callgrind.h>

/* PyMemAllocatorEx of Python's stable interface; its headers need not be installed. */
typedef struct {
    void *ctx;
    void *(*malloc)(void *, size_t);
    void *(*calloc)(void *, size_t, size_t);
    void *(*realloc)(void *, void *, size_t);
    void (*free)(void *, void *);
} Allocator;

void PyMem_GetAllocator(int domain, Allocator *);
void PyMem_SetAllocator(int domain, Allocator *);

enum { MEM = 1, OBJ = 2, DOMAINS = 3 };

static Allocator before[DOMAINS];
static long taken;

static void *count_malloc(void *domain, size_t size) {
    Allocator *real = domain;
    taken++;
    return real->malloc(real->ctx, size);
}

static void *count_calloc(void *domain, size_t many, size_t size) {
    Allocator *real = domain;
    taken++;
    return real->calloc(real->ctx, many, size);
}

static void *count_realloc(void *domain, void *place, size_t size) {
    Allocator *real = domain;
    taken++;
    return real->realloc(real->ctx, place, size);
}

static void pass_free(void *domain, void *place) {
    Allocator *real = domain;
    real->free(real->ctx, place);
}

/* From now on calls of Python's allocators count. */
void probe_begin(void) {
    taken = 0;
    for (int domain = MEM; domain <= OBJ; domain++) {
        PyMem_GetAllocator(domain, &before[domain]);
        Allocator counting = {&before[domain], count_malloc, count_calloc, count_realloc, pass_free};
        PyMem_SetAllocator(domain, &counting);
    }
}

/* As before `probe_begin`; how many there were since. */
long probe_end(void) {
    for (int domain = MEM; domain <= OBJ; domain++)
        PyMem_SetAllocator(domain, &before[domain]);
    return taken;
}

/* Under callgrind with --instr-atstart=no: instructions count from here on. Elsewhere these do nothing. */
void probe_start(void) { CALLGRIND_START_INSTRUMENTATION; }

/* At full speed again. */
void probe_stop(void) { CALLGRIND_STOP_INSTRUMENTATION; }

void probe_zero(void) { CALLGRIND_ZERO_STATS; }

/* Write down what was counted since `probe_zero` under this name. */
void probe_dump(const char *name) { CALLGRIND_DUMP_STATS_AT(name); }
