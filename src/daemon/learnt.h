// What jobs have shown of themselves, by kind: their user, name and model. How long an iteration
// takes as the job asked to run, how cores feed it, how much it slows down beside another kind,
// what a start costs it. Used for the next job of the kind, kept in the journal as one setting a
// kind
// ("learnt/USER/NAME/MODEL"), exported as profiles (docs/formats/profiles.md).
//
// Bounded: the newest kinds, few points and neighbours each. A figure that differs by less than 5 %
// from what is known is the same, so that a thousand jobs of one kind write one record.
// No lock: the engine's thread alone.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "model/cluster.h"
#include "model/job_spec.h"
#include "perf/estimator.h"
#include "perf/rate_model.h"
#include "store/record.h"
#include "training/online_model.h"

namespace berth {

/// "ann/train/resnet50"; a slash or percent sign inside a part is written %2F or %25.
[[nodiscard]] std::string kind_of(const JobSpec& spec);

struct LearntKind {
  std::string user, name, model;
  std::int64_t at = 0;                     // Unix seconds of the last news
  std::uint32_t version = 0;               // grows with every figure that changes
  double seconds_per_iteration = 0;        // on the devices it asked for, alone; 0 = not known
  std::int32_t gpus = 1;                   // of that measurement
  double batch = 0;                        // samples per iteration and worker; 0 = not said
  double start_seconds = 0;                // from the start of its processes to its first iteration
  double stop_seconds = 0;                 // from being asked to leave to having left
  CorePoints cores{};                      // see training/online_model.h
  std::map<std::string, double> beside{};  // slowdown by kind

  [[nodiscard]] std::string key() const;
};
[[nodiscard]] std::string to_json(const LearntKind& kind);
/// Nothing: another version wrote it, or somebody by a way around us.
[[nodiscard]] std::optional<LearntKind> learnt_from_json(const std::string& text);

inline constexpr std::string_view kLearntPrefix = "learnt/";

class LearntKinds {
 public:
  explicit LearntKinds(const std::map<std::string, std::string>& settings);

  [[nodiscard]] const LearntKind* find(const std::string& kind) const;
  /// More is known of it than what a start or a stop costs.
  [[nodiscard]] bool says_of_speed(const LearntKind& kind) const;
  // News of a kind; `now` is Unix seconds. Figures that cannot be are ignored.
  void learn_speed(const JobSpec& spec, double seconds_per_iteration, double batch,
                   std::int64_t now);
  void learn_start(const JobSpec& spec, double seconds, std::int64_t now);
  void learn_stop(const JobSpec& spec, double seconds, std::int64_t now);
  void learn_cores(const std::string& kind, const CorePoints& points, std::int64_t now);
  void learn_beside(const JobSpec& spec, const std::string& other, double slowdown,
                    std::int64_t now);
  /// What has to be written down since last asked.
  void take_records(std::vector<RecordBody>& records);
  [[nodiscard]] const std::map<std::string, LearntKind>& kinds() const noexcept { return kinds_; }

 private:
  LearntKind& kind(const std::string& key, const JobSpec* spec);
  void changed(LearntKind& kind, std::int64_t now);

  std::map<std::string, LearntKind> kinds_;
  std::map<std::string, bool> dirty_;  // false: it is gone
};

/// What a job's user says of it: believed before or after what others guess from jobs of other
/// kinds.
enum class OwnWord : bool { Last, First };

/// Believes of a job how long jobs of its kind have shown it to be, and asks another about the
/// rest. `OwnWord::First`: as long as no job of its user and name is over, what the user has said
/// of it is believed instead.
class LearntLengths final : public Estimator {
 public:
  explicit LearntLengths(std::unique_ptr<Estimator> other, OwnWord word = OwnWord::Last)
      : other_(std::move(other)), word_(word) {}
  void set(const TraceJob& job, Duration length) { lengths_[job.id] = length; }

  [[nodiscard]] std::string_view name() const noexcept override { return other_->name(); }
  void begin(const Trace& trace) override { other_->begin(trace); }
  [[nodiscard]] bool learns() const noexcept override { return other_->learns(); }
  void see(const TraceJob& job) override { other_->see(job); }
  [[nodiscard]] Duration estimate(const TraceJob& job) override {
    const auto known = lengths_.find(job.id);
    if (known != lengths_.end()) return known->second;
    const bool is_said = word_ == OwnWord::First && job.estimate > Duration::zero();
    return is_said && !over_.contains(key(job)) ? job.estimate : other_->estimate(job);
  }
  void learn(const TraceJob& job, Duration work) override {
    over_.insert(key(job));
    other_->learn(job, work);
  }

 private:
  static std::uint64_t key(const TraceJob& job) noexcept {
    return (std::uint64_t{job.user.value} << 32U) | job.name.value;
  }

  std::unique_ptr<Estimator> other_;
  OwnWord word_;
  std::unordered_set<std::uint64_t> over_;        // user and name; lookup only
  std::unordered_map<NameId, Duration> lengths_;  // by id of the job; lookup only
};

/// The model's profile as these jobs have shown it to be.
[[nodiscard]] Profile profile_of(const LearntKind& kind, const ProfileSet& known);
/// A profile file; a kind is called by its model, or by its name if it has none, and the newest of
/// one name counts.
[[nodiscard]] std::string learnt_yaml(const std::vector<LearntKind>& kinds);

}  // namespace berth
