/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "command.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Bytes of a line: a header, or a command in one line. */
#define LINE_MAX_LENGTH (64 * 1024)

static command_outcome malformed(command *c, const char *fault) {
    snprintf(c->fault, sizeof(c->fault), "%s", fault);
    return COMMAND_MALFORMED;
}

static int add_word(command *c, size_t at, size_t length) {
    if (c->count == c->capacity) {
        size_t capacity = c->capacity ? 2 * c->capacity : 8;
        command_word *words = realloc(c->words, capacity * sizeof(*words));
        if (!words) return 0;
        c->words = words;
        c->capacity = capacity;
    }
    c->words[c->count++] = (command_word){at, length};
    return 1;
}

/* Reads a whole number of at most 10 digits, which may be negative, between two places. */
static int read_number(const uint8_t *from, const uint8_t *to, long long *number) {
    int is_negative = from < to && *from == '-';
    from += is_negative;
    if (from == to || to - from > 10) return 0;
    long long value = 0;
    for (; from < to; from++) {
        if (*from < '0' || *from > '9') return 0;
        value = 10 * value + (*from - '0');
    }
    *number = is_negative ? -value : value;
    return 1;
}

/* Reads a header: a letter, a number, and the end of the line. */
static command_outcome read_header(command *c, const uint8_t *bytes, size_t length, char letter,
                                   const char *fault, long long *number) {
    const uint8_t *line = bytes + c->position;
    size_t left = length - c->position;
    if (!left) return COMMAND_PARTIAL;
    if (*line != letter) {
        int is_text = *line >= ' ' && *line <= '~';
        snprintf(c->fault, sizeof(c->fault), "expected '%c', got '%c'", letter,
                 is_text ? *line : '?');
        return COMMAND_MALFORMED;
    }
    const uint8_t *end = memchr(line, '\r', left);
    if (!end) {
        if (left > LINE_MAX_LENGTH) return malformed(c, "too big count string");
        return COMMAND_PARTIAL;
    }
    if (end + 1 == bytes + length) return COMMAND_PARTIAL;
    if (!read_number(line + 1, end, number)) return malformed(c, fault);
    c->position = end + 2 - bytes;
    return COMMAND_COMPLETE;
}

static int is_space(uint8_t byte) {
    return byte == ' ' || (byte >= '\t' && byte <= '\r');
}

/* A command in one line, as people type it. */
static command_outcome read_line(command *c, const uint8_t *bytes, size_t length,
                                 command_limits limits) {
    const uint8_t *end = memchr(bytes, '\n', length);
    if (!end) {
        if (length > LINE_MAX_LENGTH) return malformed(c, "too big inline request");
        return COMMAND_PARTIAL;
    }
    size_t stop = end - bytes;
    if (stop > LINE_MAX_LENGTH) return malformed(c, "too big inline request");
    if (memchr(bytes, '"', stop) || memchr(bytes, '\'', stop))
        return malformed(c, "quotes in a line are not read over SMT: use the form *<count>");
    for (size_t at = 0; at < stop;) {
        size_t begin = at;
        while (at < stop && !is_space(bytes[at])) at++;
        if (at > begin && (c->count == limits.words || !add_word(c, begin, at - begin)))
            return malformed(c, "too many words");
        at++;
    }
    c->position = stop + 1;
    return COMMAND_COMPLETE;
}

command_outcome command_read(command *c, const uint8_t *bytes, size_t length,
                             command_limits limits) {
    long long number;
    if (!c->has_header) {
        if (!length) return COMMAND_PARTIAL;
        if (bytes[0] != '*') return read_line(c, bytes, length, limits);
        const char *fault = "invalid multibulk length";
        command_outcome outcome = read_header(c, bytes, length, '*', fault, &number);
        if (outcome != COMMAND_COMPLETE) return outcome;
        if (number > 0 && (size_t)number > limits.words) return malformed(c, fault);
        c->expected = number > 0 ? (size_t)number : 0;
        c->has_header = 1;
    }
    while (c->count < c->expected) {
        size_t begin = c->position;
        const char *fault = "invalid bulk length";
        command_outcome outcome = read_header(c, bytes, length, '$', fault, &number);
        if (outcome != COMMAND_COMPLETE) return outcome;
        if (number < 0 || (size_t)number > limits.word_bytes) return malformed(c, fault);
        if (length - c->position < (size_t)number + 2) {
            c->position = begin;
            return COMMAND_PARTIAL;
        }
        if (!add_word(c, c->position, number)) return malformed(c, "memory is short");
        c->position += number + 2;
    }
    return COMMAND_COMPLETE;
}

void command_next(command *c) {
    c->count = c->expected = c->position = 0;
    c->has_header = 0;
    c->fault[0] = '\0';
}

void command_free(command *c) {
    free(c->words);
    *c = (command){0};
}
