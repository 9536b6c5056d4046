// What must hold in a LiveWorld, judged by what was told and by who lives.
#include <cmath>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "model/elastic.h"
#include "support/live_world_life.h"

namespace berth::test {

void LiveWorld::keep_act(const RecordBody& body) {
  const auto keep = [this](JobNumber job, std::string what) {
    acts_.push_back(fmt::format("{:.6f} job {} {}", seconds(), job, what));
  };
  if (const auto* intent = std::get_if<IntentRecord>(&body)) {
    std::string where;
    for (const HeldDevices& held : intent->where)
      where += fmt::format(" {}:{}", held.node, fmt::join(held.devices, ","));
    keep(intent->job, "starts on" + where);
  } else if (const auto* wish = std::get_if<WishRecord>(&body)) {
    keep(wish->job, fmt::format("{} {}", to_string(wish->wish), wish->why));
  } else if (const auto* end = std::get_if<EndRecord>(&body)) {
    keep(end->job, fmt::format("{} {} {:.6f} {}", to_string(end->outcome),
                               end->is_final ? "for good" : "for now", end->gpu_seconds, end->why));
  } else if (const auto* setting = std::get_if<SettingRecord>(&body);
             setting != nullptr && setting->key.starts_with(kPowerSetting)) {
    acts_.push_back(fmt::format("{:.6f} {} {}", seconds(), setting->key, setting->value));
  }
}

/// What is told now may never be taken back.
void LiveWorld::handle(std::span<const Committed> records) {
  committed_ = {.records = life_->store.records(),
                .checksum = life_->store.checksum_of(life_->store.records())};
  for (const Committed& committed : records) {
    const RecordBody& body = committed.record.body;
    keep_act(body);
    if (options_.keeps_log) note(fmt::format("{} {}", kind_of(body), encode(body)));
    if (const auto* end = std::get_if<EndRecord>(&body); end != nullptr && end->is_final) {
      if (!ended_seen_.emplace(end->job, end->outcome).second)
        violations_.push_back(fmt::format("I4: job {} ended twice", end->job));
    }
    const auto* wish = std::get_if<WishRecord>(&body);
    if (wish != nullptr && wish->wish == Wish::Cancel) cancelled_.insert(wish->job);
    const bool is_aside = wish != nullptr && wish->wish == Wish::Hold && wish->by == kSchedulerName;
    if (is_aside && !options_.expects_bad_jobs)
      violations_.push_back(fmt::format("R9: job {} was {}", wish->job, wish->why));
    const auto* intent = std::get_if<IntentRecord>(&body);
    if (intent == nullptr) continue;
    if (ended_seen_.contains(intent->job))
      violations_.push_back(fmt::format("I4: job {} is over and begins again", intent->job));
    // In one thread the engine has heard of every wish before it decides again.
    if (cancelled_.contains(intent->job))
      violations_.push_back(fmt::format("R6: job {} is cancelled and begins", intent->job));
    const auto job = life_->board.find(intent->job);
    if (job && !agreed_range(*job->spec).includes(intent->gpus))
      violations_.push_back(fmt::format("E1: job {} begins with {} devices and asked for {}",
                                        intent->job, intent->gpus, job->spec->gpus));
  }
}

void LiveWorld::check_recovered(const Life& life) {
  const bool is_prefix = life.store.records() >= committed_.records &&
                         (committed_.records == 0 ||
                          life.store.checksum_of(committed_.records) == committed_.checksum);
  if (!is_prefix) {
    violations_.push_back(
        fmt::format("I8: {} records were told, the {} that are left do not begin with them",
                    committed_.records, life.store.records()));
  }
  for (const auto& [job, outcome] : ended_seen_) {
    if (life.board.find(job))
      violations_.push_back(fmt::format("I4: job {} was over and is not any more", job));
  }
}

void LiveWorld::check_alive() {
  for (const auto& [job, id] : host_.living()) {
    const Attempt* held = life_->supervisor->alive(job);
    if (held != nullptr && held->id == id) continue;
    violations_.push_back(
        fmt::format("I5: attempt {} of job {} lives and holds nothing", to_text(id), job));
  }
}

/// Each attempt is charged once, for as long as it held its devices; of one that went without a
/// record nobody knows how long that was.
void LiveWorld::check_accounts(Life& life, const JobView& job) {
  const auto rows = life.store.attempts(job.number);
  if (!rows) return;
  double sum = 0;
  for (const AttemptRow& row : *rows) {
    sum += row.gpu_seconds;
    const auto held = host_.held(row.id);
    if (!held || std::abs(*held - row.gpu_seconds) < 1e-3) continue;
    violations_.push_back(fmt::format("I7: attempt {} of job {} held {} GPU seconds, charged {}",
                                      to_text(row.id), job.number, *held, row.gpu_seconds));
  }
  if (std::abs(sum - job.gpu_seconds) > 1e-3 && is_over(job.state)) {
    violations_.push_back(fmt::format("I7: attempts of job {} took {} GPU seconds, it says {}",
                                      job.number, sum, job.gpu_seconds));
  }
}

void LiveWorld::check_after_life(Life& life) {
  for (const std::string& violation : host_.violations()) violations_.push_back(violation);
  over_.clear();
  for (const JobNumber job : acknowledged_) {
    const auto view = life.service->job(kRoot, job);
    if (!view) {
      violations_.push_back(fmt::format("I1: job {} was acknowledged and is lost", job));
      continue;
    }
    over_[job] = *view;
    check_accounts(life, *view);
    if (!is_over(view->state)) {
      violations_.push_back(fmt::format("L1: job {} is {} ({}) and nothing will happen any more",
                                        job, to_string(view->state), view->reason));
    }
  }
  if (host_.alive() > 0) violations_.push_back("L1: processes are left");
  check_policy(life);
  check_engines(life);
}

/// Nothing that people do may make an engine fail.
void LiveWorld::check_engines(const Life& life) {
  if (options_.expects_bad_jobs || !life.scheduler) return;
  if (const auto failures = life.scheduler->figures().failures; failures > 0)
    violations_.push_back(fmt::format("R9: {} engines failed", failures));
}

/// What was set last is in effect.
void LiveWorld::check_policy(const Life& life) {
  const auto setting = life.board.setting("policy");
  if (!setting) return;
  const auto chosen = policy_choice_from(*setting);
  const std::string policy = life.scheduler->figures().policy;
  if (chosen && chosen->policy != policy)
    violations_.push_back(fmt::format("R6: {} was set, {} decides", chosen->policy, policy));
}

}  // namespace berth::test
