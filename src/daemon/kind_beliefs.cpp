#include "daemon/kind_beliefs.h"

#include <algorithm>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace berth {

const LearntKind* KindBeliefs::find(const JobSpec& spec) const {
  return parts_.learnt != nullptr ? parts_.learnt->find(kind_of(spec)) : nullptr;
}

std::optional<double> KindBeliefs::seconds_per_iteration(const JobSpec& spec) const {
  const LearntKind* kind = find(spec);
  if (kind == nullptr || kind->seconds_per_iteration <= 0 || kind->gpus != spec.gpus)
    return std::nullopt;
  return kind->seconds_per_iteration;
}

void KindBeliefs::set_length(TraceJob& slot, const JobSpec& spec) {
  if (spec.iterations <= 0 || spec.estimate != 0) return;
  const auto iteration = seconds_per_iteration(spec);
  if (!iteration) return;
  const double seconds = static_cast<double>(spec.iterations) * *iteration;
  const double most = spec.time_limit > 0 ? static_cast<double>(spec.time_limit) : kMaxInputSeconds;
  slot.duration = slot.estimate = seconds_to_duration(std::clamp(seconds, 1.0, most));
  if (parts_.lengths == nullptr) return;
  parts_.lengths->set(slot, slot.duration);
  parts_.notes.push_back(
      nlohmann::json{{"job", parts_.slots.names.text(slot.id)}, {"micros", slot.duration.count()}}
          .dump());
}

void KindBeliefs::set_profile(JobId slot, const JobSpec& spec) {
  const LearntKind* kind = find(spec);
  if (kind == nullptr || parts_.believed == nullptr) return;
  if (!parts_.learnt->says_of_speed(*kind)) return;
  const auto known = profiles_.find(kind->key());
  if (known == profiles_.end() || known->second.first != kind->version) add_profile(*kind);
  profile_of_[slot] = profiles_.at(kind->key()).second;
}

/// The profile is made from the note of it, so that a life that repeats the note makes the same.
void KindBeliefs::add_profile(const LearntKind& kind) {
  const std::string key = kind.key();
  std::vector<PairSlowdown> pairs;
  for (const auto& [other, theirs] : profiles_) {
    PairSlowdown pair{.other = theirs.second};
    if (const auto times = kind.beside.find(other); times != kind.beside.end())
      pair.of = times->second;
    const LearntKind* beside = parts_.learnt->find(other);
    if (beside != nullptr && beside->beside.contains(key)) pair.of_other = beside->beside.at(key);
    if (other != key && (pair.of || pair.of_other)) pairs.push_back(pair);
  }
  const ProfileId next{static_cast<std::uint32_t>(parts_.believed->profiles().size())};
  if (const auto times = kind.beside.find(key); times != kind.beside.end())
    pairs.push_back({.other = next, .of = times->second});  // beside others like itself
  nlohmann::json note{{"kind", to_json(kind)}, {"pairs", nlohmann::json::array()}};
  for (const PairSlowdown& pair : pairs)
    note["pairs"].push_back({pair.other.value, pair.of.value_or(0), pair.of_other.value_or(0)});
  parts_.notes.push_back(note.dump());
  repeat(nlohmann::json::parse(parts_.notes.back()));
}

std::optional<ProfileId> KindBeliefs::profile_of(JobId slot) const {
  const auto found = profile_of_.find(slot);
  if (found == profile_of_.end()) return std::nullopt;
  return found->second;
}

Duration KindBeliefs::start_cost(const Action& action, const JobTable& jobs,
                                 const std::optional<LedgerJob>& job) const {
  Duration cost = parts_.costs.resume;
  if (changes_devices(action.kind)) cost = parts_.costs.migrate;
  if (jobs.first_start[action.job] == kNever) cost = parts_.costs.start;
  if (cost > Duration::zero()) return cost;
  const LearntKind* kind = job ? find(*job->spec) : nullptr;
  return kind != nullptr ? seconds_to_duration(kind->start_seconds) : cost;
}

Duration KindBeliefs::stop_cost(const std::optional<LedgerJob>& job) const {
  if (parts_.costs.preempt > Duration::zero()) return parts_.costs.preempt;
  const LearntKind* kind = job ? find(*job->spec) : nullptr;
  return kind != nullptr ? seconds_to_duration(kind->stop_seconds) : Duration::zero();
}

void KindBeliefs::leaves(JobNumber job, Time since) {
  leaves_since_[job] = since;
  parts_.notes.push_back(
      nlohmann::json{{"leaves", job}, {"since", since.time_since_epoch().count()}}.dump());
}

void KindBeliefs::left(JobNumber job, bool was_preempted, const std::optional<LedgerJob>& record,
                       Time now, std::int64_t wall_seconds) {
  const auto since = leaves_since_.extract(job);
  if (since.empty() || parts_.learnt == nullptr) return;
  if (was_preempted && record && now >= since.mapped())
    parts_.learnt->learn_stop(*record->spec, to_seconds(now - since.mapped()), wall_seconds);
}

void KindBeliefs::learn(const Shown& shown, std::int64_t wall_seconds) {
  if (parts_.learnt == nullptr) return;
  const LiveRates::Measured& measured = shown.measured;
  if (measured.company.empty() && shown.granted == shown.spec.gpus) {
    const double reference = measured.seconds_per_iteration * measured.believed;
    parts_.learnt->learn_speed(shown.spec, reference, shown.progress.batch, wall_seconds);
  } else if (measured.company.size() == 1 && measured.alone_seconds && shown.beside != nullptr) {
    parts_.learnt->learn_beside(shown.spec, kind_of(*shown.beside),
                                measured.seconds_per_iteration / *measured.alone_seconds,
                                wall_seconds);
  }
  if (!shown.seconds_running) return;
  // What lies before its first report, less the iteration that this one told of.
  const double began_after = *shown.seconds_running - shown.progress.first_seconds_ago;
  parts_.learnt->learn_start(
      shown.spec, std::max(0.0, began_after - measured.seconds_per_iteration), wall_seconds);
}

bool KindBeliefs::repeat(const nlohmann::json& note) {
  if (note.contains("kind")) {
    const auto kind = learnt_from_json(note["kind"].get<std::string>());
    if (!kind) return true;
    Profile profile = berth::profile_of(*kind, parts_.believed->profiles());
    profile.name = fmt::format("learnt:{}#{}", kind->key(), kind->version);
    const auto said = [](double times) {
      return times > 0 ? std::optional{times} : std::nullopt;  // a slowdown is above zero
    };
    std::vector<PairSlowdown> pairs;
    for (const auto& pair : note["pairs"])
      pairs.push_back({.other = ProfileId{pair[0].get<std::uint32_t>()},
                       .of = said(pair[1].get<double>()),
                       .of_other = said(pair[2].get<double>())});
    const ProfileId id = parts_.believed->add(std::move(profile), pairs);
    profiles_[kind->key()] = {kind->version, id};
    return true;
  }
  if (note.contains("leaves")) {
    leaves_since_[note["leaves"].get<JobNumber>()] =
        Time{Duration{note["since"].get<std::int64_t>()}};
    return true;
  }
  if (!note.contains("micros")) return false;
  if (parts_.lengths != nullptr) {
    TraceJob job;
    job.id = parts_.slots.names.intern(note["job"].get<std::string>());
    parts_.lengths->set(job, Duration{note["micros"].get<std::int64_t>()});
  }
  return true;
}

}  // namespace berth
