// The decision problem of ANDREAS at one moment: node types with what they cost, the nodes, and for
// every job the ways to run it, when it is due and what each hour late costs. Plain data: knows
// neither engine nor clock. Times are hours from now, money is EUR.
//
// The cost of a node is affine in its busy GPUs (idle_rate + k * gpu_rate), so what a job draws is
// its own matter, and a node adds its idle rate until its last job ends.
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <vector>

namespace berth::andreas {

inline constexpr std::uint32_t kNone = 0xffffffffU;
inline constexpr double kNoDueDate = std::numeric_limits<double>::infinity();
/// Two times closer than this are the same, in hours.
inline constexpr double kSameTime = 1e-9;

/// Equal nodes. Types of one pool stand together, the largest nodes first.
struct NodeType {
  std::uint32_t pool = 0;
  std::int32_t gpus = 1;
  double idle_rate = 0;  // EUR per hour of being on
  double gpu_rate = 0;   // EUR per hour more for every busy GPU

  [[nodiscard]] double rate(std::int32_t busy) const noexcept {
    return idle_rate + gpu_rate * busy;
  }
};

struct Node {
  std::uint32_t type = 0;
  double ready = 0;  // hours until it takes jobs: zero unless it is off or boots
};

/// One way to run a job, for one unit of work.
struct Choice {
  std::uint32_t type = 0;
  std::int32_t gpus = 1;
  double hours = 1;
  double cost = 0;            // hours times the rate of nodes where it is alone; filled in below
  std::int32_t per_node = 0;  // a gang over whole nodes of the pool takes so many of each, at most

  [[nodiscard]] bool is_gang() const noexcept { return per_node > 0; }
};

/// The choices of all jobs of one kind, sorted once. A choice that is no faster than one with fewer
/// GPUs of the same type is left out.
class ChoiceList {
 public:
  ChoiceList(std::vector<Choice> choices, std::span<const NodeType> types);

  /// By cost, then fewer GPUs, then type.
  [[nodiscard]] std::span<const Choice> by_cost() const noexcept { return choices_; }
  /// Positions there, by time, then cost.
  [[nodiscard]] std::span<const std::uint32_t> by_time() const noexcept { return by_time_; }
  [[nodiscard]] const Choice& operator[](std::uint32_t at) const noexcept { return choices_[at]; }
  [[nodiscard]] bool empty() const noexcept { return choices_.empty(); }
  [[nodiscard]] const Choice& fastest() const noexcept { return choices_[by_time_.front()]; }
  [[nodiscard]] const Choice& slowest() const noexcept { return choices_[by_time_.back()]; }
  /// Position of this type and size, or kNone.
  [[nodiscard]] std::uint32_t find(std::uint32_t type, std::int32_t gpus) const noexcept;

 private:
  std::vector<Choice> choices_;
  std::vector<std::uint32_t> by_time_;
};

/// So many GPUs of a node.
struct Share {
  std::uint32_t node = 0;
  std::int32_t gpus = 0;
  friend bool operator==(const Share&, const Share&) = default;
};

struct Job {
  std::uint32_t id = 0;  // the last word in every order
  const ChoiceList* choices = nullptr;
  double work = 1;  // units left
  double due = kNoDueDate;
  double weight = 0;             // EUR per hour late
  double submitted = 0;          // not after now: zero or less
  std::uint32_t kept = kNone;    // the choice it runs by, or is about to; kNone: it waits
  std::vector<Share> home = {};  // where it does

  double pressure = 0;   // filled in by prepare()
  double postponed = 0;  // what it costs to let it wait

  [[nodiscard]] double hours(const Choice& choice) const noexcept { return choice.hours * work; }
  [[nodiscard]] double cost(const Choice& choice) const noexcept { return choice.cost * work; }
  [[nodiscard]] bool is_on_time(const Choice& choice) const noexcept {
    return hours(choice) <= due + kSameTime;
  }
};

struct Instance {
  std::vector<NodeType> types;
  std::vector<Node> nodes;  // by type, those ready first before others
  std::vector<Job> jobs;    // by pressure once prepared

  double rho = 100;     // weight of the worst case when a job is postponed
  double period = 1;    // H, hours to the next rescheduling at the latest
  double aging = 0.01;  // EUR per hour late and hour waited, for jobs without due date
  double restart = 0;   // hours of its new node's cost that a running job pays when it is moved
  double boot = 0;      // hours in which a node costs its idle rate before it works

  std::vector<std::uint32_t> first_node;  // by type, with the end at the back; see prepare()
  double postponed = 0;                   // all jobs
  double gap_scale = 0;                   // mean distance of two neighbours in pressure

  /// Puts the jobs in order and fills in what follows from the rest.
  void prepare();
};

}  // namespace berth::andreas
