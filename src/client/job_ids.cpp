// Names of jobs as people write them: 12, 12_3, 12_[0-9], joined by commas. Indices of an array are
// turned into numbers with one question to the scheduler.

#include "client/job_ids.h"

#include <algorithm>
#include <charconv>

#include <fmt/format.h>

namespace berth::client {

namespace {

// 12_* and 12_[0-9] are Slurm's notation; "%2" makes no sense in a name.
Result<JobName> one_name(std::string_view text) {
  JobName name;
  const auto underscore = text.find('_');
  const std::string_view number = text.substr(0, underscore);
  const auto [end, error] =
      std::from_chars(number.data(), number.data() + number.size(), name.number);
  const auto wrong = [&] {
    return fail(fmt::format("'{}' is no job (as in 12, 12_3 or 12_[0-9])", text));
  };
  if (number.empty() || error != std::errc{} || end != number.data() + number.size() ||
      name.number == 0)
    return wrong();
  if (underscore == std::string_view::npos) return name;
  std::string_view indices = text.substr(underscore + 1);
  name.indices.emplace();
  if (indices == "*") return name;
  if (indices.starts_with('[') && indices.ends_with(']'))
    indices = indices.substr(1, indices.size() - 2);
  const auto array = parse_array(indices);
  if (!array || array->at_once != 0) return wrong();
  name.indices = array->indices;
  return name;
}

/// Slurm gives tasks ids of their own as they start: there they are numbered by array and index.
void add_tasks(const JobName& name, std::vector<JobNumber>& numbers) {
  if (name.indices->empty()) numbers.push_back(name.number);
  for (const std::int32_t index : *name.indices)
    numbers.push_back((name.number << 32U) | static_cast<std::uint32_t>(index));
}

// Jobs of an array have consecutive numbers in the order of their indices.
Result<void> add_of_array(Scheduler& scheduler, const JobName& name,
                          std::vector<JobNumber>& numbers) {
  BERTH_TRY(const JobRow first, scheduler.job(name.number));
  if (!first.spec->array && first.array == name.number) {
    add_tasks(name, numbers);
    return {};
  }
  if (!first.spec->array || (first.array != 0 && first.array != name.number))
    return fail(fmt::format("job {} is no array", name.number));
  const auto& indices = first.spec->array->indices;  // numbers are consecutive, in this order
  const auto add = [&](std::size_t position) { numbers.push_back(name.number + position); };
  if (name.indices->empty())
    for (std::size_t i = 0; i < indices.size(); ++i) add(i);
  for (const std::int32_t index : *name.indices) {
    const auto found = std::ranges::lower_bound(indices, index);
    if (found == indices.end() || *found != index)
      return fail(fmt::format("array {} has no job {}", name.number, index));
    add(static_cast<std::size_t>(found - indices.begin()));
  }
  return {};
}

}  // namespace

Result<std::vector<JobName>> parse_job_names(std::string_view text) {
  std::vector<JobName> names;
  std::string one;
  int depth = 0;
  // A comma inside brackets belongs to the name.
  for (const char c : std::string(text) + ",") {
    if (c == '[') ++depth;
    if (c == ']') --depth;
    if (c != ',' || depth > 0) {
      one += c;
      continue;
    }
    BERTH_TRY(auto name, one_name(one));
    names.push_back(std::move(name));
    one.clear();
  }
  if (depth != 0) return fail(fmt::format("'{}': a bracket is not closed", text));
  return names;
}

// All names are checked before the first question: half a command is worse than none.
Result<std::vector<JobNumber>> resolve_jobs(Scheduler& scheduler,
                                            const std::vector<std::string>& names,
                                            BareNumber bare) {
  std::vector<JobName> parsed;
  Error error;
  for (const std::string& text : names) {
    auto some = parse_job_names(text);
    if (some)
      parsed.insert(parsed.end(), some->begin(), some->end());
    else
      error.messages.insert(error.messages.end(), some.error().messages.begin(),
                            some.error().messages.end());
  }
  if (!error.messages.empty()) return tl::unexpected<Error>(std::move(error));
  std::vector<JobNumber> numbers;
  for (JobName& name : parsed) {
    if (!name.indices && bare == BareNumber::WholeArray) {
      // A job that is not there, or not ours to see, is for the action itself to complain about.
      const auto job = scheduler.job(name.number);
      if (!job && scheduler.last_status() == 0) return tl::unexpected<Error>(job.error());
      if (job && job->spec->array && job->array == name.number) name.indices.emplace();
    }
    if (name.indices) {
      BERTH_TRY_VOID(add_of_array(scheduler, name, numbers));
    } else {
      numbers.push_back(name.number);
    }
  }
  return numbers;
}

}  // namespace berth::client
