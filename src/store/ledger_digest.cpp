// Everything a ledger says, in order of number, as one fingerprint.
#include <bit>
#include <unordered_map>

#include <nlohmann/json.hpp>

#include "base/digest.h"
#include "store/journal_json.h"
#include "store/ledger.h"

namespace berth {

namespace {

class LedgerDigest {
 public:
  void add(std::uint64_t word) { digest_.add(word); }
  void add(Time time) { digest_.add(time.time_since_epoch().count()); }
  void add(double value) { digest_.add(std::bit_cast<std::uint64_t>(value)); }
  void add(const std::string& text) { digest_.add(std::string_view(text)); }
  void add_signed(std::int64_t value) { digest_.add(value); }

  void add(const LedgerJob& job) {
    add(job.number);
    add(spec_digest(job.spec));
    add(job.array);
    add_signed(job.array_index);
    add(job.submitted);
    add_signed(job.submitted_wall);
    add(std::uint64_t{job.is_held});
    add(job.held_by);
    add(job.held_why);
    add(std::uint64_t{job.is_frozen});
    add(job.frozen_by);
    add(job.frozen_why);
    for (const JobNumber rival : job.made_way) add(rival);
    add(job.stopping ? static_cast<std::uint64_t>(*job.stopping) + 1 : 0);
    add(std::uint64_t{job.attempt.has_value()});
    if (job.attempt) add(*job.attempt);
    add_signed(job.attempts);
    add_signed(job.failures);
    add_signed(job.preemptions);
    add(std::uint64_t{job.first_start.has_value()});
    add(job.first_start.value_or(Time{}));
    add_signed(job.first_start_wall);
    add(job.gpu_seconds);
    add(job.run_seconds);
    add(job.joules);
  }
  [[nodiscard]] std::string hex() const { return digest_.hex(); }

 private:
  void add(const LiveAttempt& attempt) {
    add(attempt.id.generation);
    add(attempt.id.counter);
    add(dump(to_json(attempt.where)));
    add_signed(attempt.gpus);
    add(attempt.since);
    add_signed(attempt.wall);
    add(std::uint64_t{attempt.is_suspended});
    // Only if there is any: digests of journals from before resizing stay what they were.
    if (attempt.extra_gpu_seconds != 0) add(attempt.extra_gpu_seconds);
  }
  /// The jobs of an array share their spec: its text is made once.
  std::uint64_t spec_digest(const std::shared_ptr<const JobSpec>& spec) {
    const auto [entry, is_new] = specs_.try_emplace(spec.get(), 0);
    if (is_new) {
      Digest digest;
      digest.add(std::string_view(spec_text(*spec)));
      entry->second = digest.value();
    }
    return entry->second;
  }

  Digest digest_;
  std::unordered_map<const JobSpec*, std::uint64_t> specs_;  // lookup only
};

}  // namespace

std::string Ledger::digest() const {
  LedgerDigest digest;
  digest.add(next_number_);
  digest.add(generation_);
  digest.add(now_);
  digest.add(last_attempt_.generation);
  digest.add(last_attempt_.counter);
  digest.add(static_cast<std::uint64_t>(settings_.size()));
  for (const auto& [key, value] : settings_) {
    digest.add(key);
    digest.add(value);
  }
  digest.add(static_cast<std::uint64_t>(jobs_.size()));
  for (const auto& [number, job] : jobs_) digest.add(job);
  return digest.hex();
}

}  // namespace berth
