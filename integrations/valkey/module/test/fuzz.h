/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef FUZZ_H
#define FUZZ_H

#include <stddef.h>
#include <stdint.h>

/* The function that libFuzzer calls. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t length);
/* Makes an input of fewer bytes than `most`; returns how many. */
size_t fuzz_make(uint8_t *data, size_t most);
/* The next random number of the seed. */
uint64_t fuzz_random(void);
/* Ends the process with the line, unless the condition holds. */
#define check(condition)                                                                           \
    do {                                                                                           \
        if (!(condition)) fuzz_fail(__FILE__, __LINE__, #condition);                               \
    } while (0)
void fuzz_fail(const char *file, int line, const char *condition) __attribute__((noreturn));

#endif
