// How explain_slurm() finds its reasons: one object per question, with the parts in files by what
// they are about: order (slurm_why.cpp), room and nodes (slurm_why_room.cpp), limits
// (slurm_why_limits.cpp), whatever else is waited for (slurm_why_gates.cpp). Of this room only.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "advise/reasons.h"
#include "advise/room.h"
#include "advise/slurm_why.h"

namespace berth::advise {

/// Jobs and nodes that a reason names, at most.
inline constexpr std::size_t kMostNamed = 5;

[[nodiscard]] std::string gpus_text(std::int64_t count, const std::string& type);  // "8 a100"
[[nodiscard]] std::string counted(std::size_t count, std::string_view one);        // "2 jobs"
/// For people, as squeue writes it: "7_[2-4]".
[[nodiscard]] std::string id_of(const slurm::Job& job);
/// "8 a100, 16 cores on each of 2 nodes": what it asks for.
[[nodiscard]] std::string asked_text(const slurm::Job& job, const PerNode& needs);

class Explanation {
 public:
  explicit Explanation(const WhyQuestion& question);
  [[nodiscard]] Why tell();

 private:
  [[nodiscard]] std::string shown_reason() const;
  [[nodiscard]] std::string unknown_text() const;
  [[nodiscard]] std::string not_waiting() const;
  // A reason with the remedy of Slurm's word, or one beside it without.
  WhyReason& add(std::string text);
  WhyReason& add(std::string kind, std::string text);
  /// Beside the first one, which has the word's own remedy.
  WhyReason& add_beside(std::string kind, std::string text);
  [[nodiscard]] bool may_be_named(const slurm::Job& other) const;
  /// The largest first where it is said so; five at most, and the rest as a number.
  [[nodiscard]] std::vector<std::string> named(const std::vector<const slurm::Job*>& jobs) const;

  // Order.
  /// Those that wait in a partition of its own and come before it.
  [[nodiscard]] std::vector<const slurm::Job*> before_it() const;
  void add_priority();
  void add_unread();

  // Room.
  [[nodiscard]] static std::string fits_text(const Room& room);
  void add_resources();
  /// What is missing: in all, together on a node, or beside the GPUs.
  void add_shortage(const Room& room, WhyReason& reason);
  /// Enough of them, but not together.
  void add_shape(const Room& room, const std::string& asks, WhyReason& reason);
  /// The GPUs are there, cores or memory beside them are not; or too few nodes have both.
  void add_side(const Room& room, const std::string& asks, WhyReason& reason);
  void add_nodes_out(const Room& room);
  [[nodiscard]] static std::string state_text(const slurm::Node& node);
  /// Who gives something back first, at the latest.
  void add_next_end(const Room& room);

  // What else it waits for.
  void add_reservation();
  void add_limit();
  [[nodiscard]] std::string asks_for(const Limit& limit) const;
  [[nodiscard]] std::string limit_fix(const Limit& limit) const;
  [[nodiscard]] static std::string sacctmgr_word(const Limit& limit);
  /// "afterok:12(unfulfilled),afterany:13_4(failed)": each job with what became of it.
  void add_dependency();
  std::string dependency_text(std::string_view one, WhyReason& reason);
  [[nodiscard]] std::string state_of(const std::string& name) const;
  void add_begin();
  /// "ReqNodeNotAvail, UnavailableNodes:n[1-2]": those that Slurm names, or those that it asks for.
  void add_nodes();
  /// A reservation to come keeps nodes free of jobs that would run into it.
  void add_reservations_ahead(const std::vector<std::string>& names);
  void add_partition();
  void add_constraints();
  void add_array();
  void add_expected_start();

  const WhyQuestion& question_;
  const slurm::Job& job_;
  const Sight& sight_;
  ReasonWord word_;
  Why why_;
};

}  // namespace berth::advise
