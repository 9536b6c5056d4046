#include "policies/gandiva_fair/stride.h"

#include <algorithm>

namespace berth::gandiva_fair {

void GangStride::add(JobId job, std::int32_t gpus, double tickets) {
  const auto least = std::ranges::min_element(entries_, {}, &Entry::pass);
  const double pass = least == entries_.end() ? 0 : least->pass;
  entries_.push_back({.job = job, .gpus = gpus, .tickets = tickets, .pass = pass});
}

void GangStride::remove(JobId job) {
  std::erase_if(entries_, [&](const Entry& entry) { return entry.job == job; });
}

std::span<GangStride::Entry> GangStride::order() {
  std::ranges::sort(entries_, [](const Entry& a, const Entry& b) {
    return a.pass != b.pass ? a.pass < b.pass : a.job < b.job;
  });
  return entries_;
}

std::vector<JobId> GangStride::run_quantum(std::int64_t devices) {
  std::vector<JobId> taken;
  for (Entry& entry : order()) {
    if (entry.gpus > devices) continue;
    devices -= entry.gpus;
    taken.push_back(entry.job);
    entry.charge();
  }
  return taken;
}

}  // namespace berth::gandiva_fair
