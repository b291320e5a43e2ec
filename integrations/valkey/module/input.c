/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "input.h"

#include <stdlib.h>
#include <string.h>

#include "frame.h"

void input_init(input *in) {
    memset(in, 0, sizeof(*in));
    in->ready_end = &in->ready;
    in->read_end = &in->read;
}

static size_t price(const input_message *message) {
    return sizeof(*message) + message->length;
}

/* Moves the early messages whose time has come. */
static void advance(input *in) {
    while (in->early && in->early->position == in->position) {
        input_message *message = in->early;
        in->early = message->next;
        in->early_count--;
        in->position += message->length;
        message->next = NULL;
        *in->ready_end = message;
        in->ready_end = &message->next;
    }
}

/* Notes where the stream ends: not before bytes that have come. */
static input_outcome add_end(input *in, uint64_t end) {
    if (in->has_end || end < in->position) return INPUT_MALFORMED;
    for (const input_message *early = in->early; early; early = early->next)
        if (early->position + early->length > end) return INPUT_MALFORMED;
    in->has_end = 1;
    in->end = end;
    return INPUT_END;
}

input_outcome input_add(input *in, smt_rpc rpc, int is_request, smt_body *body, smt_slice bytes,
                        size_t held_max) {
    if (bytes.length < FRAME_HEADER) return INPUT_MALFORMED;
    uint64_t position = frame_position(bytes.data);
    size_t length = bytes.length - FRAME_HEADER;
    if (position & FRAME_END)
        return length ? INPUT_MALFORMED : add_end(in, position & ~FRAME_END);
    /* Below 2^63 no sum overflows. */
    if (!length || position < in->position) return INPUT_MALFORMED;
    if (in->has_end && position + length > in->end) return INPUT_MALFORMED;
    if (in->held + sizeof(input_message) + length > held_max) return INPUT_FULL;
    if (in->early_count == INPUT_EARLY_MAX) return INPUT_FULL;
    input_message **place = &in->early;
    while (*place && (*place)->position < position) {
        if ((*place)->position + (*place)->length > position) return INPUT_MALFORMED;
        place = &(*place)->next;
    }
    if (*place && position + length > (*place)->position) return INPUT_MALFORMED;
    input_message *message = calloc(1, sizeof(*message));
    if (!message) return INPUT_FULL;
    message->body = body;
    message->rpc = rpc;
    message->data = bytes.data + FRAME_HEADER;
    message->length = length;
    message->position = position;
    message->is_request = is_request;
    message->next = *place;
    *place = message;
    in->early_count++;
    in->held += price(message);
    advance(in);
    return INPUT_TAKEN;
}

size_t input_read(input *in, uint8_t *out, size_t length) {
    size_t copied = 0;
    while (in->ready && copied < length) {
        input_message *message = in->ready;
        size_t left = message->length - message->taken;
        size_t part = left < length - copied ? left : length - copied;
        memcpy(out + copied, message->data + message->taken, part);
        copied += part;
        message->taken += part;
        if (message->taken < message->length) break;
        in->ready = message->next;
        if (!in->ready) in->ready_end = &in->ready;
        in->held -= price(message);
        message->next = NULL;
        *in->read_end = message;
        in->read_end = &message->next;
    }
    return copied;
}

int input_has_ready(const input *in) {
    return in->ready != NULL;
}

int input_is_at_end(const input *in) {
    return in->has_end && in->position == in->end && !in->ready;
}

static void free_all(input_message *message) {
    while (message) {
        input_message *next = message->next;
        input_message_free(message);
        message = next;
    }
}

void input_stop(input *in) {
    for (input_message *early = in->early; early; early = early->next) in->held -= price(early);
    free_all(in->early);
    in->early = NULL;
    in->early_count = 0;
    in->has_end = 1;
    in->end = in->position;
}

input_message *input_next_read(input *in) {
    input_message *message = in->read;
    if (!message) return NULL;
    in->read = message->next;
    if (!in->read) in->read_end = &in->read;
    return message;
}

void input_message_free(input_message *message) {
    smt_body_free(message->body);
    free(message);
}

void input_free(input *in) {
    free_all(in->ready);
    free_all(in->early);
    free_all(in->read);
    input_init(in);
}
