/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Calls a fuzz target with inputs of a seed, for some seconds:
 *     input-fuzz SECONDS [SEED]
 * A fault prints the seed of its input alone, which runs again as `input-fuzz 0 SEED`. With clang,
 * libFuzzer takes the place of this file: clang -fsanitize=fuzzer,address input_fuzz.c ../input.c */
#include "fuzz.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define INPUT_MAX 1024

static uint64_t state, seed;

/* SplitMix64. */
uint64_t fuzz_random(void) {
    uint64_t z = (state += UINT64_C(0x9e3779b97f4a7c15));
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

void fuzz_fail(const char *file, int line, const char *condition) {
    fprintf(stderr, "%s:%d: not %s\nthe input's seed: %llu\n", file, line, condition,
            (unsigned long long)seed);
    abort();
}

/* Also where the sanitizer ends the process: the last line that was printed has the seed. */
static void say_seed(void) {
    fprintf(stderr, "the input's seed: %llu\n", (unsigned long long)seed);
}

void __sanitizer_set_death_callback(void (*callback)(void));

int main(int count, char **arguments) {
    double seconds = count > 1 ? atof(arguments[1]) : 1;
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    seed = count > 2 ? strtoull(arguments[2], NULL, 10) : (uint64_t)now.tv_nsec * 1000003 + now.tv_sec;
    unsigned long long first = seed, runs = 0;
    __sanitizer_set_death_callback(say_seed);
    static uint8_t data[INPUT_MAX];
    clock_t until = clock() + (clock_t)(seconds * CLOCKS_PER_SEC);
    do {
        state = seed;
        LLVMFuzzerTestOneInput(data, fuzz_make(data, INPUT_MAX));
        seed++;
        runs++;
    } while (clock() < until);
    printf("%llu inputs from seed %llu on: no fault\n", runs, first);
}
