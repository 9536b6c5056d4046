#include "policies/gandiva/ring.h"

#include <algorithm>

#include "base/check.h"

namespace berth::gandiva {

namespace {

auto offset(std::size_t n) { return static_cast<std::ptrdiff_t>(n); }

}  // namespace

std::size_t Ring::position(JobId job) const noexcept {
  const auto here = [&](const Seat& seat) { return seat.job == job || seat.guest == job; };
  return static_cast<std::size_t>(std::ranges::find_if(seats_, here) - seats_.begin());
}

void Ring::add(JobId job, std::int32_t gpus) {
  BERTH_CHECK(position(job) == seats_.size(), "a job has one seat");
  seats_.push_back({job, std::nullopt, gpus});
}

void Ring::remove(JobId job) {
  const std::size_t at = position(job);
  BERTH_CHECK(at < seats_.size(), "only a resident leaves");
  Seat& seat = seats_[at];
  if (seat.guest) {
    if (seat.job == job) seat.job = *seat.guest;
    seat.guest.reset();
    return;
  }
  seats_.erase(seats_.begin() + offset(at));
  if (at < running_) --running_;
}

void Ring::end_slice() {
  std::ranges::rotate(seats_, seats_.begin() + offset(running_));
  running_ = 0;
}

void Ring::choose(std::int32_t capacity) {
  running_ = 0;
  while (running_ < seats_.size() && seats_[running_].gpus <= capacity) {
    capacity -= seats_[running_].gpus;
    ++running_;
  }
}

void Ring::limit_running(std::size_t seats) { running_ = std::min(running_, seats); }

void Ring::pack(JobId host, JobId guest) {
  const std::size_t from = position(guest);
  BERTH_CHECK(from < seats_.size() && !seats_[from].guest, "a guest comes from a seat of its own");
  const std::int32_t gpus = seats_[from].gpus;
  remove(guest);
  const std::size_t to = position(host);
  BERTH_CHECK(to < seats_.size() && !seats_[to].guest && seats_[to].gpus == gpus,
              "two jobs with the same GPUs share a seat");
  seats_[to].guest = guest;
}

void Ring::unpack(JobId guest) {
  const std::size_t at = position(guest);
  BERTH_CHECK(at < seats_.size() && seats_[at].guest, "only a shared seat is split");
  const JobId leaves = *seats_[at].guest;
  const std::int32_t gpus = seats_[at].gpus;
  seats_[at].guest.reset();
  const std::size_t behind = std::max(at + 1, running_);  // it does not run on its own yet
  seats_.insert(seats_.begin() + offset(behind), {leaves, std::nullopt, gpus});
}

bool Ring::is_running(JobId job) const noexcept { return position(job) < running_; }

const Ring::Seat* Ring::seat_of(JobId job) const noexcept {
  const std::size_t at = position(job);
  return at < seats_.size() ? &seats_[at] : nullptr;
}

}  // namespace berth::gandiva
