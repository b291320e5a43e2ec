/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Messages by the bytes of a fuzzer, to input.c and to a model of it: an array that has each byte of
 * the stream. Outcomes, bytes, their order, and what is held have to agree. fuzz.c says how to run
 * it. */
#include <stdlib.h>
#include <string.h>

#include "fuzz.h"
#include "frame.h"
#include "input.h"

#define STREAM 2048

/* One bound of bytes, and one behind which messages are counted alone. */
static size_t held_max;

/* The body of a message: the memory behind its bytes, so that the sanitizer sees each fault. */
static long bodies;

void smt_body_free(smt_body *body) {
    bodies--;
    free(body);
}

typedef struct model {
    uint8_t is_there[STREAM];
    size_t come;  /* bytes in order that have come */
    size_t taken; /* and were read */
    size_t end;
    int has_end;
    unsigned early; /* messages behind a gap, at most */
} model;

/* Each byte of the stream is told by its place. */
static uint8_t byte_at(size_t place) {
    return (uint8_t)(place * 131 + (place >> 8));
}

/* What the model says of a message, but for bounds. */
static input_outcome expected(model *m, const uint8_t *message, size_t length) {
    if (length < FRAME_HEADER) return INPUT_MALFORMED;
    uint64_t word = frame_position(message);
    uint64_t position = word & ~FRAME_END;
    length -= FRAME_HEADER;
    if (word & FRAME_END) {
        if (length || m->has_end || position < m->come) return INPUT_MALFORMED;
        for (size_t place = position; place < STREAM; place++)
            if (m->is_there[place]) return INPUT_MALFORMED;
        m->has_end = 1;
        m->end = position < STREAM ? position : STREAM + 1;
        return INPUT_END;
    }
    if (!length || position < m->come) return INPUT_MALFORMED;
    if (m->has_end && m->end <= STREAM && position + length > m->end) return INPUT_MALFORMED;
    for (size_t place = position; place < position + length && place < STREAM; place++)
        if (m->is_there[place]) return INPUT_MALFORMED;
    return INPUT_TAKEN;
}

static void note(model *m, size_t position, size_t length) {
    memset(m->is_there + position, 1, length);
    while (m->come < STREAM && m->is_there[m->come]) m->come++;
}

/* What the input says that it holds is what it holds. */
static void check_held(const input *in) {
    size_t held = 0, early = 0;
    for (const input_message *one = in->ready; one; one = one->next)
        held += sizeof(*one) + one->length;
    for (const input_message *one = in->early; one; one = one->next, early++)
        held += sizeof(*one) + one->length;
    check(held == in->held && early == in->early_count);
}

static void add(input *in, model *m, size_t position, size_t length, int is_request, uint64_t flags,
                size_t cut) {
    if (position + length > STREAM) length = STREAM - position;
    size_t size = FRAME_HEADER + length;
    if (cut < size) size = cut;
    uint8_t header[FRAME_HEADER], *bytes = malloc(size ? size : 1);
    frame_write(header, position | flags);
    memcpy(bytes, header, size < FRAME_HEADER ? size : FRAME_HEADER);
    for (size_t i = FRAME_HEADER; i < size; i++) bytes[i] = byte_at(position + i - FRAME_HEADER);
    bodies++;
    model before = *m;
    input_outcome said = expected(m, bytes, size);
    int is_full = in->early_count == INPUT_EARLY_MAX ||
                  in->held + sizeof(input_message) + size - FRAME_HEADER > held_max;
    smt_rpc rpc = {1, position};
    input_outcome outcome =
        input_add(in, rpc, is_request, (smt_body *)bytes, (smt_slice){bytes, size}, held_max);
    if (outcome == INPUT_FULL) {
        /* Bounds may refuse what is else right or wrong. */
        check(is_full && said != INPUT_END);
        *m = before;
    } else {
        check(outcome == said && !(outcome == INPUT_TAKEN && is_full));
        if (outcome == INPUT_TAKEN && !flags) note(m, position, size - FRAME_HEADER);
    }
    if (outcome != INPUT_TAKEN) smt_body_free((smt_body *)bytes);
    check(in->position == m->come);
    check_held(in);
}

static void take(input *in, model *m, size_t length) {
    uint8_t out[512];
    if (length > sizeof(out)) length = sizeof(out);
    size_t left = m->come - m->taken;
    size_t copied = input_read(in, out, length);
    check(copied == (left < length ? left : length));
    for (size_t i = 0; i < copied; i++) check(out[i] == byte_at(m->taken + i));
    m->taken += copied;
    check(input_has_ready(in) == (m->taken < m->come));
    int is_at_end = m->has_end && m->end == m->come && m->taken == m->come;
    check(input_is_at_end(in) == is_at_end);
    input_message *read;
    while ((read = input_next_read(in))) {
        check(read->position + read->length <= m->taken && read->taken == read->length);
        input_message_free(read);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t length) {
    input in;
    input_init(&in);
    model m = {0};
    held_max = length % 2 ? 5000 : 50000;
    for (size_t i = 0; i + 4 <= length; i += 4) {
        const uint8_t *op = data + i;
        size_t near = m.come + op[1] % 16, far = (op[1] << 8 | op[2]) % STREAM;
        size_t position = op[0] & 1 ? far : near < STREAM ? near : STREAM - 1;
        switch (op[0] >> 1 & 7) {
        case 0:
            take(&in, &m, op[3]);
            break;
        case 1: /* the very next bytes */
            if (m.come < STREAM) add(&in, &m, m.come, 1 + op[3] % 64, 1, 0, SIZE_MAX);
            break;
        case 2: /* an end */
            if (op[0] & 128) add(&in, &m, position, op[3] & 64 ? 1 : 0, 1, FRAME_END, SIZE_MAX);
            break;
        case 3: /* a short message, or as the last one a place far away */
            if (op[0] & 128) {
                add(&in, &m, position, op[3] % 4, op[3] & 1, 0, op[3] % 12);
            } else if (op[0] & 64) {
                add(&in, &m, position, op[3] % 4, 1, (uint64_t)(op[3] | 1) << 55, SIZE_MAX);
                i = length;
            }
            break;
        case 4: /* a byte alone, as a rule behind a gap */
            add(&in, &m, far, 1, 1, 0, SIZE_MAX);
            break;
        default:
            add(&in, &m, position, op[3] % 48, op[3] & 1, 0, SIZE_MAX);
        }
    }
    take(&in, &m, 512);
    input_free(&in);
    check(bodies == 0);
    return 0;
}

/* Any bytes are operations. Some inputs are bytes alone behind gaps, up to the bounds. */
size_t fuzz_make(uint8_t *data, size_t most) {
    size_t length = fuzz_random() % most;
    int is_gaps = fuzz_random() % 8 == 0;
    for (size_t i = 0; i < length; i++) data[i] = is_gaps && i % 4 == 0 ? 8 : fuzz_random();
    return length;
}
