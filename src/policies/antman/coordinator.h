// How the jobs of a device get on, as the local coordinators of the paper arrive at it second by
// second: here computed at once when somebody comes or leaves. Owns who lives where in which role,
// how much of each device is to spare, and since when a guest is starved or held back. Decides
// about terms only; who starts and who has to go is for the policy.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "perf/opportunistic.h"
#include "policies/antman/spare_devices.h"
#include "policies/kit/job_timers.h"
#include "policies/kit/pass.h"

namespace berth::antman {

/// An opportunistic job lives as a guest on what the guaranteed ones leave.
enum class Role : std::uint8_t { Guaranteed, Opportunistic };

struct DeviceLoad {
  double guaranteed = 0;      // compute the guaranteed job wants
  double wanted = 0;          // and its guests
  std::int64_t left_mib = 0;  // memory for the guests
  double working_mib = 0;     // and what they want of it
  std::int32_t guests = 0;
  bool is_held = false;  // by a guaranteed job
};

class Coordinator {
 public:
  struct Rules {
    Interference interference;
    double busiest = 0.8;            // u_max: utilisation of a device that is joined
    std::int32_t guests_beside = 1;  // opportunistic jobs beside a guaranteed one
    std::int32_t guests_alone = 3;   // and on a device without
    std::int32_t reserve_mib = 500;
    std::int32_t least_mib = 2048;                 // m_min: memory a device must have to spare
    Duration starving = std::chrono::seconds{60};  // short of memory until evicted
    Duration crawling = std::chrono::minutes{5};   // held back until moved; zero = never
  };
  Coordinator(const View& view, const Rules& rules);

  /// The plan has started it there.
  void add(JobId job, Role role, std::span<const Slice> devices);
  /// It has left its devices, or is about to. Answers whether it had any.
  bool remove(JobId job);
  [[nodiscard]] std::span<const Slice> devices(JobId job) const noexcept {
    return residents_[job].devices;
  }
  /// Somebody came or left there, or the node did: settle() looks at it.
  void mark(NodeId node) { marked_.push_back(node); }
  void mark(std::span<const Slice> slices);
  /// Sets every guest around a change to where it settles, and offers what is to spare.
  void settle(Pass& pass);

  /// Devices for so many guests, none of a higher level (spare_devices.h).
  [[nodiscard]] std::optional<std::vector<Slice>> choose(PoolId pool, std::int32_t gpus,
                                                         std::int32_t highest) const {
    return spare_.choose(pool, gpus, highest);
  }
  [[nodiscard]] bool has_idle() const noexcept { return spare_.has_idle(); }
  /// Lowers memory limits so that somebody fits there who is to come; sets his own terms too if he
  /// is a guest.
  void make_room(Pass& pass, std::span<const Slice> slices, JobId comer, Role role) const;
  [[nodiscard]] DeviceLoad load(const View& view, NodeId node, std::int32_t device) const;
  /// Opportunistic jobs on the nodes of the slices, ascending.
  [[nodiscard]] std::vector<JobId> guests_on(const View& view, std::span<const Slice> slices) const;

  /// Guests by the time they have to go for want of memory, and by that they may move away from
  /// whom they are held back for.
  [[nodiscard]] const JobTimers& starving() const noexcept { return starving_; }
  [[nodiscard]] const JobTimers& crawling() const noexcept { return crawling_; }

 private:
  struct Resident {
    Role role = Role::Guaranteed;
    std::vector<Slice> devices;
  };
  [[nodiscard]] bool is_guest(JobId job) const noexcept {
    return residents_[job].role == Role::Opportunistic;
  }
  [[nodiscard]] Terms settled_terms(const View& view, JobId job) const;
  void note_state(const View& view, JobId job, const Terms& terms);
  void offer_devices(const View& view, NodeId node);

  Rules rules_;
  SparePools spare_;
  Column<JobId, Resident> residents_;
  JobTimers starving_;
  JobTimers crawling_;
  std::vector<NodeId> marked_;
};

}  // namespace berth::antman
