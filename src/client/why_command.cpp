#include <algorithm>

#include "client/commands.h"
#include "client/job_ids.h"
#include "client/tables.h"

namespace berth::client {

int run_why(const Call& call) {
  if (call.operands().size() != 1)
    return call.console.complain(kMisuse, "why: which job? As in `berth why 12`");
  if (const auto names = parse_job_names(call.operands().front()); !names)
    return call.console.complain(kMisuse, names.error());
  auto scheduler = call.scheduler();
  if (!scheduler) return call.console.complain(kMisuse, scheduler.error());
  const auto ids = resolve_jobs(*scheduler, call.operands(), BareNumber::OneJob);
  if (!ids) return call.console.complain(kFailure, ids.error());
  bool is_never = false;
  for (const JobNumber id : *ids) {
    const auto body = scheduler->why(id);
    if (!body) return call.console.complain(kFailure, body.error());
    const auto why = why_from(*body);
    if (!why) return call.console.complain(kFailure, why.error());
    call.has("json") ? call.console.put_json(*body) : call.console.put(why_text(*why));
    is_never = is_never || std::ranges::any_of(why->reasons, [](const WhyReason& reason) {
                 return reason.when == "never";
               });
  }
  const int code = call.console.done();
  return code == kSuccess && is_never ? kNever : code;
}

}  // namespace berth::client
