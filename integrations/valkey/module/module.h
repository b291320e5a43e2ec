/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* What the module's entries for Valkey and for Redis share. */
#ifndef MODULE_H
#define MODULE_H

#include "session.h"

#define EXPORTED __attribute__((visibility("default")))

/* Finds a function of the module API by its name. Returns 0 if there is one. */
typedef int (*api_get)(const char *name, void *function);
/* What the server gives a module to find functions by. */
api_get api_of(module_context *context);
/* Fills module.api by names with this prefix. Returns the name that is missing, or NULL. */
const char *api_find(module_context *context, const char *prefix);

/* Fills module.options and what else `loadmodule` may choose. Returns 0 after telling why not. */
int arguments_read(module_context *context, module_string **arguments, int count);

/* Gives the server the command SMT.RELOAD. Returns 0 after telling why not. */
int reload_register(module_context *context);

/* Closes the endpoint when the server stops. */
void module_server_stops(module_context *context, module_event event, uint64_t sub, void *data);
/* The section `smt` of INFO. */
void module_inform(module_info *info, int is_crash_report);

#endif
