// Who holds a lease in which term: the promises made to jobs with a deadline, on one pool.
//
// Time is cut into terms of equal length, numbered from time zero. A job that was admitted has as
// many leases as its work needs, each in a term that ends by its deadline; in no term do leases
// exceed the capacity. Sizes are rounded up beforehand (common/buddy_servers.h), so that the count
// is enough and every lease can be placed close together.
//
// A new job is refused quickly if no plan could exist, otherwise takes the fullest terms that still
// hold it; if these are too few, all promises are laid out anew, by earliest deadline, and at last
// by integer program (optimum.h) if few jobs are concerned. With n jobs and terms up to the latest
// deadline H, the quick answers are O(n + H), laying out anew is O(n H).
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <vector>

#include "base/id.h"
#include "policies/chronus/optimum.h"

namespace berth::chronus {

using Term = std::int64_t;

struct LeaseRequest {
  JobId job;
  std::int64_t gpus = 1;    // rounded up
  std::int64_t leases = 1;  // terms it must hold
  Term end = 0;             // leases in terms before this one are in time
};

enum class Verdict : std::uint8_t {
  Direct,     // beside the others as they are
  Replanned,  // with the others laid out anew
  Searched,   // with a layout that the exact search found
  TooLong,    // fewer terms end by its deadline than it needs
  TooWide,    // larger than everything there is
  Demand,     // more is promised until some deadline than there is
  NoPlan,     // no layout was found
};
[[nodiscard]] constexpr bool is_admitted(Verdict verdict) noexcept {
  return verdict <= Verdict::Searched;
}

/// Would like the next term, if that breaks no promise.
struct LeaseGuest {
  std::int64_t gpus = 1;
  double reward = 1;  // above zero
};

/// How far the exact search goes; zero jobs switch it off.
struct SearchEffort {
  std::size_t jobs = 30;
  std::size_t columns = 2000;  // jobs times terms
  std::int64_t nodes = 200;
  double seconds = 10;  // last resort: the nodes bite first, or runs would differ
  [[nodiscard]] SolveLimits limits() const noexcept { return {.seconds = seconds, .nodes = nodes}; }
};

class LeasePlan {
 public:
  explicit LeasePlan(std::int64_t capacity, const SearchEffort& effort = {})
      : capacity_(capacity), effort_(effort) {}

  /// The next term to be granted; earlier ones are past.
  [[nodiscard]] Term first() const noexcept { return first_; }
  [[nodiscard]] std::int64_t capacity() const noexcept { return capacity_; }
  [[nodiscard]] std::int64_t used(Term term) const noexcept;
  [[nodiscard]] std::size_t size() const noexcept { return jobs_.size(); }
  [[nodiscard]] bool holds(JobId job) const { return jobs_.contains(job); }
  /// Terms of the job, ascending.
  [[nodiscard]] std::span<const Term> leases(JobId job) const;
  [[nodiscard]] const LeaseRequest& request(JobId job) const;
  /// Jobs with a lease in the next term, by id.
  void next_jobs(std::vector<JobId>& jobs) const;

  /// Promises the leases if that breaks no other promise.
  [[nodiscard]] Verdict admit(const LeaseRequest& request);
  void remove(JobId job);
  /// It turns out to need more or fewer leases. Surplus ones go back, latest first. False: more
  /// cannot be had, and nothing changed.
  [[nodiscard]] bool resize(JobId job, std::int64_t leases);
  /// False: what is promised does not fit any more; the caller takes promises back and calls
  /// repair().
  [[nodiscard]] bool set_capacity(std::int64_t capacity);
  [[nodiscard]] bool repair();
  /// Lays out all promises anew so that the guests who find room in the next term are worth most.
  /// By position: who does. Nothing: too many jobs or terms for the exact search, or it found no
  /// answer; then nothing has changed.
  [[nodiscard]] std::optional<std::vector<bool>> make_way(std::span<const LeaseGuest> guests);
  /// Terms before this one are past, whether or not they were used.
  void advance(Term first);

 private:
  struct Promise {
    LeaseRequest request;
    std::vector<Term> terms;  // ascending
  };
  using Promises = std::map<JobId, Promise>;

  [[nodiscard]] bool is_overbooked(const LeaseRequest& more) const;
  [[nodiscard]] bool pick(const std::vector<std::int64_t>& used, const LeaseRequest& request,
                          std::vector<Term>& terms) const;
  [[nodiscard]] bool lay_out(const LeaseRequest* more);
  [[nodiscard]] bool search(const LeaseRequest& more);
  [[nodiscard]] SelectionJob promised(const LeaseRequest& request) const;
  void lay_out_as(std::span<const LeaseRequest> jobs, const Selection& selection);
  [[nodiscard]] std::vector<LeaseRequest> movable(const LeaseRequest& more) const;
  [[nodiscard]] bool is_within_effort(std::span<const LeaseRequest> jobs,
                                      std::size_t guests) const noexcept;
  void take(const LeaseRequest& request, std::vector<Term> terms);
  void book(std::vector<std::int64_t>& used, std::span<const Term> terms, std::int64_t gpus) const;
  void owe(Term end, std::int64_t gpu_leases);

  std::int64_t capacity_;
  SearchEffort effort_;
  Term first_ = 0;
  Promises jobs_;
  std::vector<std::int64_t> used_;     // by term from first_ on; nothing behind its end
  std::map<Term, std::int64_t> owed_;  // GPU leases still to come, by end
  struct Candidate {
    std::int64_t used;
    Term term;
  };
  mutable std::vector<Candidate> candidates_;  // scratch
};

}  // namespace berth::chronus
