// Which jobs are alike to a program. Same kind (speeds and GPUs), same owner and weight, and what
// the objective looks at equal within a factor (or close in rank): such jobs form one class. The
// factor starts at 2^(1/16) and grows until there are few enough classes, so that a program's size
// does not depend on the number of jobs. O(J) for all tries together.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/id.h"
#include "core/kind.h"

namespace berth::gavel {

struct JobFacts {
  JobId job;
  KindId kind;
  std::uint32_t entity = 0;
  double weight = 1;
  double first = 0;  // what the objective looks at; zero or less: nothing
  double second = 0;
  std::uint32_t rank = 0;  // in the objective's order, for those that have one
};

struct JobClass {
  std::vector<std::uint32_t> members;  // positions in the facts, by (rank, JobId)
  double first = 0;                    // means over the members
  double second = 0;
  double rank = 0;
};

/// In no more classes than `most`, if kinds, owners and weights alone do not make more.
[[nodiscard]] std::vector<JobClass> group_jobs(std::span<const JobFacts> jobs, std::size_t most);

/// Everybody alone.
[[nodiscard]] std::vector<JobClass> one_by_one(std::span<const JobFacts> jobs);

}  // namespace berth::gavel
