/** What the two ways of judging share. */
#ifndef EXPLORER_ALLOWED_INT_H
#define EXPLORER_ALLOWED_INT_H

#include "explorer/judge/allowed.h"

/** The hash by which a table or a client is known. */
uint64_t allowed_name(const char *name);

/** allowed_judge() of several clients. */
bool allowed_judge_clients(const allowed_t *allowed, const check_report_t *report, uint32_t low,
                           uint32_t high, const char *what, verdict_t *verdict);

#endif
