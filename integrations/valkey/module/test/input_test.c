/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Tests of input.c: messages in all orders become the stream, and what breaks the rules is refused. */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "frame.h"
#include "input.h"

_Static_assert(sizeof(smt_error) == 512, "as in libsmt/src/lib.rs");
_Static_assert(sizeof(smt_event) == 80, "as in libsmt/src/lib.rs");
_Static_assert(sizeof(smt_rpc) == 16, "as in libsmt/src/lib.rs");
_Static_assert(sizeof(smt_server_options) == 80, "as in libsmt/src/lib.rs");
_Static_assert(sizeof(smt_peer) == 144, "as in libsmt/src/lib.rs");

static int bodies;

/* The bodies of the tests are memory of their own, so that the sanitizer sees each fault. */
void smt_body_free(smt_body *body) {
    bodies--;
    free(body);
}

static input_outcome add(input *in, uint64_t position, const char *text, size_t held_max) {
    size_t length = FRAME_HEADER + strlen(text);
    uint8_t *bytes = malloc(length);
    frame_write(bytes, position);
    memcpy(bytes + FRAME_HEADER, text, strlen(text));
    bodies++;
    smt_body *body = (smt_body *)bytes;
    smt_rpc rpc = {1, position};
    input_outcome outcome = input_add(in, rpc, 1, body, (smt_slice){bytes, length}, held_max);
    if (outcome != INPUT_TAKEN) smt_body_free(body);
    return outcome;
}

static void messages_in_all_orders_become_the_stream(void) {
    static const char *const parts[] = {"he", "l", "lo wo", "rld"};
    static const uint64_t positions[] = {0, 2, 3, 8};
    for (int order = 0; order < 24; order++) {
        input in;
        input_init(&in);
        int left[] = {0, 1, 2, 3}, code = order;
        for (int count = 4; count > 0; count--) {
            int chosen = code % count;
            code /= count;
            assert(add(&in, positions[left[chosen]], parts[left[chosen]], 1000) == INPUT_TAKEN);
            memmove(left + chosen, left + chosen + 1, (count - chosen - 1) * sizeof(int));
        }
        uint8_t out[32];
        size_t length = 0, part;
        while ((part = input_read(&in, out + length, 3))) length += part;
        assert(length == 11 && !memcmp(out, "hello world", 11));
        assert(in.held == 0 && !input_has_ready(&in));
        for (int i = 0; i < 4; i++) {
            input_message *read = input_next_read(&in);
            assert(read && read->rpc.id == positions[i]);
            input_message_free(read);
        }
        assert(!input_next_read(&in));
        input_free(&in);
    }
    assert(bodies == 0);
}

static void what_breaks_the_rules_is_refused(void) {
    input in;
    input_init(&in);
    assert(add(&in, 0, "", 1000) == INPUT_MALFORMED);
    assert(add(&in, UINT64_MAX, "ab", 1000) == INPUT_MALFORMED);
    assert(add(&in, 0, "abc", 1000) == INPUT_TAKEN);
    assert(add(&in, 0, "abc", 1000) == INPUT_MALFORMED);
    assert(add(&in, 10, "abc", 1000) == INPUT_TAKEN);
    assert(add(&in, 10, "abc", 1000) == INPUT_MALFORMED);
    assert(add(&in, 12, "x", 1000) == INPUT_MALFORMED);
    assert(add(&in, 8, "abc", 1000) == INPUT_MALFORMED);
    assert(add(&in, 3, "0123456", 1000) == INPUT_TAKEN);
    input_free(&in);
    assert(bodies == 0);
}

static void a_stream_ends_where_its_client_says(void) {
    input in;
    input_init(&in);
    assert(add(&in, 3, "de", 1000) == INPUT_TAKEN);
    assert(add(&in, 4 | FRAME_END, "", 1000) == INPUT_MALFORMED);
    assert(add(&in, 5 | FRAME_END, "x", 1000) == INPUT_MALFORMED);
    assert(add(&in, 5 | FRAME_END, "", 1000) == INPUT_END);
    assert(add(&in, 5 | FRAME_END, "", 1000) == INPUT_MALFORMED);
    assert(add(&in, 5, "f", 1000) == INPUT_MALFORMED);
    assert(!input_is_at_end(&in));
    assert(add(&in, 0, "abc", 1000) == INPUT_TAKEN);
    assert(!input_is_at_end(&in));
    uint8_t out[8];
    assert(input_read(&in, out, sizeof(out)) == 5 && !memcmp(out, "abcde", 5));
    assert(input_is_at_end(&in));
    input_free(&in);
    assert(bodies == 0);
}

static void a_stream_that_is_stopped_ends_behind_what_is_ready(void) {
    input in;
    input_init(&in);
    assert(add(&in, 0, "abc", 1000) == INPUT_TAKEN);
    assert(add(&in, 5, "fg", 1000) == INPUT_TAKEN);
    assert(add(&in, 9, "j", 1000) == INPUT_TAKEN);
    input_stop(&in);
    assert(!input_is_at_end(&in));
    uint8_t out[8];
    assert(input_read(&in, out, sizeof(out)) == 3 && !memcmp(out, "abc", 3));
    assert(input_is_at_end(&in) && in.held == 0);
    assert(add(&in, 3, "de", 1000) == INPUT_MALFORMED);
    input_free(&in);
    assert(bodies == 0);
}

static void what_waits_is_bounded(void) {
    input in;
    input_init(&in);
    assert(add(&in, 5, "0123456789", sizeof(input_message) + 9) == INPUT_FULL);
    for (int i = 0; i < INPUT_EARLY_MAX; i++)
        assert(add(&in, 5 + 2 * i, "x", 1 << 20) == INPUT_TAKEN);
    assert(add(&in, 1, "x", 1 << 20) == INPUT_FULL);
    input_free(&in);
    assert(bodies == 0);
}

int main(void) {
    messages_in_all_orders_become_the_stream();
    what_breaks_the_rules_is_refused();
    what_waits_is_bounded();
    a_stream_ends_where_its_client_says();
    a_stream_that_is_stopped_ends_behind_what_is_ready();
    puts("5 passed, 0 failed");
}
