/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Bytes of a fuzzer as commands, to command.c: read at once, and again in pieces, of which each is
 * memory of its own length. Both have to agree, and no word leaves the bytes. fuzz.c says how to run
 * it. */
#include <stdlib.h>
#include <string.h>

#include "command.h"
#include "fuzz.h"

static const command_limits limits = {5, 40};

/* Reads on in memory that has no byte more. */
static command_outcome read_copy(command *c, const uint8_t *bytes, size_t length) {
    uint8_t *copy = malloc(length ? length : 1);
    memcpy(copy, bytes, length);
    command_outcome outcome = command_read(c, copy, length, limits);
    if (outcome == COMMAND_COMPLETE) {
        check(c->position > 0 && c->position <= length && c->count <= limits.words);
        for (size_t i = 0; i < c->count; i++) {
            check(c->words[i].length <= length && c->words[i].at <= length - c->words[i].length);
            check(c->words[i].length <= limits.word_bytes || bytes[0] != '*');
        }
    } else if (outcome == COMMAND_MALFORMED) {
        check(c->fault[0] && memchr(c->fault, '\0', sizeof(c->fault)));
        check(!memchr(c->fault, '\r', strlen(c->fault)));
    }
    free(copy);
    return outcome;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t length) {
    if (length < 1) return 0;
    size_t step = 1 + data[0] % 7;
    data++, length--;
    command whole = {0}, parts = {0};
    while (length) {
        command_outcome at_once = read_copy(&whole, data, length), outcome = COMMAND_PARTIAL;
        for (size_t seen = step; outcome == COMMAND_PARTIAL; seen += step) {
            outcome = read_copy(&parts, data, seen < length ? seen : length);
            if (seen >= length) break;
        }
        check(outcome == at_once);
        if (outcome != COMMAND_COMPLETE) break;
        check(whole.position == parts.position && whole.count == parts.count);
        if (whole.count)
            check(!memcmp(whole.words, parts.words, whole.count * sizeof(*whole.words)));
        data += whole.position;
        length -= whole.position;
        command_next(&whole);
        command_next(&parts);
    }
    command_free(&whole);
    command_free(&parts);
    return 0;
}

/* Pieces of the protocol, most of them in their place. */
size_t fuzz_make(uint8_t *data, size_t most) {
    static const char *const pieces[] = {"*1\r\n", "*2\r\n", "*3\r\n",  "$0\r\n\r\n", "$1\r\na\r\n",
                                         "$3\r\nGET\r\n", "$-1\r\n", "*-1\r\n", "*0\r\n",
                                         "$41\r\n",
                                         "*6\r\n$1\r\na\r\n$1\r\nb\r\n$0\r\n\r\n$0\r\n\r\n$0\r\n\r\n$0\r\n\r\n", "*5\r\n", "$40\r\n",
                                         "0123456789012345678901234567890123456789\r\n",
                                         " a b  c d e f\n", "\r\n", "\n", "\r", "PING\r\n",
                                         "GET 'a'\r\n", " a b  c\n", "$", "*", "9", "99999999999"};
    size_t length = 1;
    data[0] = fuzz_random();
    for (uint64_t count = fuzz_random() % 24; count; count--) {
        const char *piece = pieces[fuzz_random() % (sizeof(pieces) / sizeof(*pieces))];
        size_t part = strlen(piece);
        if (length + part >= most) break;
        memcpy(data + length, piece, part);
        length += part;
    }
    for (uint64_t count = fuzz_random() % 4; count; count--)
        data[fuzz_random() % length] = fuzz_random();
    return length;
}
