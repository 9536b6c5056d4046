// Limits of associations and QOS, with what is used of them where Slurm tells it.
#include <fmt/format.h>

#include "advise/explanation.h"
#include "advise/limits.h"
#include "base/time.h"

namespace berth::advise {

void Explanation::add_limit() {
  const std::string_view whole = job_.reason;
  const auto limit = limit_of(whole.substr(0, whole.find_first_of(",:( ")));
  if (!limit) {
    add(std::string{word_.text});
    return;
  }
  const LimitHolder holder{.user = job_.user, .account = job_.account, .qos = job_.qos};
  const bool is_qos = limit->owner == LimitOwner::Qos;
  const std::string what = limit->what == "gres"     ? "GPUs and other devices"
                           : limit->what == "cpu"    ? "cores"
                           : limit->what == "mem"    ? "memory"
                           : limit->what == "node"   ? "nodes"
                           : limit->what == "submit" ? "submitted jobs"
                           : limit->what == "wall"   ? "time"
                                                     : limit->what;
  const bool is_minutes = limit->key.find("Mins") != std::string::npos;
  const std::string owner = is_qos ? fmt::format("QOS {}", job_.qos)
                                   : fmt::format("account {} or its user", job_.account);
  const std::string meaning =
      limit->is_least ? fmt::format("{} asks for more {} than it wants", owner, what)
                      : fmt::format("{} has a limit of {}{} {}", owner,
                                    is_minutes ? "minutes of " : "", what, limit->scope);
  const auto uses = uses_of(*limit, question_.limits, holder);
  if (uses.empty()) {
    WhyReason& reason = add(fmt::format("{}; how much of it is used Slurm does not tell", meaning));
    reason.fix = limit_fix(*limit);
    return;
  }
  for (const LimitUse& use : uses) {
    const std::string used =
        use.used.empty() ? std::string{} : fmt::format("{} in use of ", use.used);
    WhyReason& reason =
        add(fmt::format("{}: {}{} {} {}", use.of, used, use.allowed, use.what, limit->scope));
    reason.text += fmt::format("; it asks for {}", asks_for(*limit));
    reason.numbers = {{"allowed", use.allowed}, {"used", use.used}, {"what", use.what}};
    reason.entities = {use.of};
    reason.fix = limit_fix(*limit);
  }
}

std::string Explanation::asks_for(const Limit& limit) const {
  if (limit.what == "jobs" || limit.what == "submit") return "one more";
  if (limit.what == "wall") return human_duration(static_cast<double>(job_.time_limit));
  if (limit.what == "cpu") return counted(static_cast<std::size_t>(job_.cpus), "core");
  if (limit.what == "node")
    return counted(static_cast<std::size_t>(std::max(1, job_.min_nodes)), "node");
  return gpus_text(job_.gpus(), job_.gpu_type());
}

std::string Explanation::limit_fix(const Limit& limit) const {
  return limit.owner == LimitOwner::Qos
             ? fmt::format(
                   "another QOS: scontrol update JobId={} QOS=…; or an administrator: "
                   "sacctmgr modify qos {} set {}=…",
                   job_.key.job, job_.qos, sacctmgr_word(limit))
             : fmt::format("an administrator: sacctmgr modify account {} set {}=…", job_.account,
                           sacctmgr_word(limit));
}

std::string Explanation::sacctmgr_word(const Limit& limit) {
  if (limit.key == "MaxTRESPU") return "MaxTRESPerUser";
  if (limit.key == "MaxTRESPA") return "MaxTRESPerAccount";
  if (limit.key == "MaxTRESPJ") return "MaxTRESPerJob";
  if (limit.key == "MaxTRESPN") return "MaxTRESPerNode";
  if (limit.key == "MaxJobsPU") return "MaxJobsPerUser";
  if (limit.key == "MaxJobsPA") return "MaxJobsPerAccount";
  if (limit.key == "MaxSubmitJobsPU") return "MaxSubmitJobsPerUser";
  if (limit.key == "MaxSubmitJobsPA") return "MaxSubmitJobsPerAccount";
  if (limit.key == "MaxWallPJ") return "MaxWall";
  return limit.key;
}

}  // namespace berth::advise
