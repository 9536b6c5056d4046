// Ordered lists of jobs, one per queue, with constant-time append and removal. A removed job
// remembers its neighbours, so a series of changes can be taken back exactly by undoing it in
// reverse order.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/id.h"

namespace berth::tiresias {

class RunnerLists {
 public:
  void resize(std::size_t lists, std::size_t jobs) {
    ends_.assign(lists, {});
    links_.assign(jobs, {});
  }
  void push_back(std::size_t list, JobId job) {
    Ends& ends = ends_[list];
    links_[job.value] = {ends.last, kNone};
    (ends.last == kNone ? ends.first : links_[ends.last].next) = job.value;
    ends.last = job.value;
  }
  void remove(std::size_t list, JobId job) {
    const Link link = links_[job.value];
    (link.previous == kNone ? ends_[list].first : links_[link.previous].next) = link.next;
    (link.next == kNone ? ends_[list].last : links_[link.next].previous) = link.previous;
  }
  /// Undoes remove(); everything that happened to the list since must have been undone before.
  void put_back(std::size_t list, JobId job) {
    const Link link = links_[job.value];
    (link.previous == kNone ? ends_[list].first : links_[link.previous].next) = job.value;
    (link.next == kNone ? ends_[list].last : links_[link.next].previous) = job.value;
  }
  [[nodiscard]] bool empty(std::size_t list) const noexcept { return ends_[list].first == kNone; }
  template <class Visit>  // in order; the visited job may be removed
  void for_each(std::size_t list, Visit visit) const {
    for (std::uint32_t at = ends_[list].first; at != kNone;) {
      const std::uint32_t next = links_[at].next;
      visit(JobId{at});
      at = next;
    }
  }

 private:
  static constexpr std::uint32_t kNone = 0xffffffffU;
  struct Ends {
    std::uint32_t first = kNone;
    std::uint32_t last = kNone;
  };
  struct Link {
    std::uint32_t previous = kNone;
    std::uint32_t next = kNone;
  };
  std::vector<Ends> ends_;
  std::vector<Link> links_;  // by JobId; a job is in at most one list
};

}  // namespace berth::tiresias
