/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* A command of a client as a call of the module API. */
#ifndef REDIS_CALL_H
#define REDIS_CALL_H

#include "redis_client.h"

/* The commands that need more than a call, for people. */
extern const char redis_missing_text[];

/* Executes the client's command, and appends its reply. */
void redis_call(redis_client *c);
/* Whether the caller of a command may run CONFIG SET. Commands of modules have no ACL categories in
 * 7.0, so that `-@admin` takes none of them away. */
int redis_is_admin(module_context *context);
/* The user of a client before AUTH: that of its certificate, or the default one if it needs no
 * password. Returns 0 if protected mode keeps this client out. */
int redis_first_user(redis_client *c, int is_local);

#endif
