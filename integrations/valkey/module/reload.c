/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* The command SMT.RELOAD: the files of `loadmodule` are read again, and sessions of clients that
 * would not be let in any more end as the argument `distrusted` says. */
#include <stdio.h>
#include <string.h>

#include "listener.h"
#include "module.h"

/* Answers with one line, which the log has too. */
static int refuse(module_context *context, const char *reason) {
    char text[sizeof(((smt_error *)NULL)->text) + 128];
    snprintf(text, sizeof(text), "ERR %s. Nothing has changed; mend it and call SMT.RELOAD again",
             reason);
    for (char *at = text; *at; at++)
        if ((unsigned char)*at < ' ') *at = ' ';
    module.api.Log(context, "warning", "SMT.RELOAD: %s", text + strlen("ERR "));
    return module.api.ReplyWithError(context, text);
}

/* Ends the session of an event, or begins to. Returns whether it has done so. */
static int end_session(module_context *context, const smt_event *event) {
    session *s = event->data;
    if (!s || s->linger_until) {
        /* The server has closed it already, and its client has not taken the last bytes yet. */
        if (module.distrusted == DISTRUSTED_FINISH) return 0;
        smt_session_close_distrusted(module.endpoint, event->rpc.session);
        if (s) session_ended(s);
        return 0;
    }
    if (module.distrusted == DISTRUSTED_FINISH && !session_finish(s)) return 0;
    module.api.Log(context, "notice", "client %s:%d would not be let in any more: %.*s", s->ip,
                   s->port, (int)event->text.length, (const char *)event->text.data);
    if (module.distrusted == DISTRUSTED_FINISH) return 1;
    if (s->client && s->client == module.api.GetClientId(context)) {
        /* The caller gets the reply, and the server executes none of its commands behind this one.
         * The other clients it is not asked to close: until it had done so, a thread of 8.0 might
         * read one of them, and crash. */
        module.api.DeauthenticateAndCloseClient(context, s->client);
        return 1;
    }
    session_cut(s);
    return 1;
}

static int reload(module_context *context, module_string **words, int count) {
    (void)words;
    if (count != 1) return module.api.WrongArity(context);
    if (module.is_admin && !module.is_admin(context))
        return module.api.ReplyWithError(context, "NOPERM in Redis 7.0 SMT.RELOAD needs the "
                                                  "permission to run CONFIG SET too");
    if (!module.endpoint) return refuse(context, "environment: this server does not listen by SMT");
    smt_error error;
    int judges = module.distrusted != DISTRUSTED_KEEP;
    if (smt_server_reload(module.endpoint, &module.options, judges, &error) != SMT_OK)
        return refuse(context, error.text);
    uint64_t ended = 0;
    smt_event event;
    while (smt_endpoint_next_distrusted(module.endpoint, &event))
        ended += end_session(context, &event);
    module.distrusted_count += ended;
    listener_tick_now();
    module.api.Log(context, ended ? "warning" : "notice",
                   "SMT.RELOAD: certificates were read again; new clients meet them. %llu sessions "
                   "of clients that would not be let in any more end",
                   (unsigned long long)ended);
    return module.api.ReplyWithLongLong(context, (long long)ended);
}

int reload_register(module_context *context) {
    static const char name[] = "smt.reload";
    /* As CONFIG: also while data is loaded, and on a replica without its primary. */
    static const char flags[] = "admin deny-script allow-loading allow-stale";
    if (module.api.CreateCommand(context, name, reload, flags, 0, 0, 0) == MODULE_OK &&
        (!module.api.SetCommandACLCategories ||
         module.api.SetCommandACLCategories(module.api.GetCommand(context, name),
                                            "admin dangerous") == MODULE_OK))
        return 1;
    module.api.Log(context, "warning", "environment: this server takes no command %s", name);
    return 0;
}
