#include "step/book.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <chrono>
#include <set>

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "wire/reader.h"
#include "wire/step_fields.h"
#include "wire/tree.h"

namespace berth {

namespace {

constexpr off_t kMaxBytes = off_t{64} << 10U;
constexpr std::size_t kMaxDevices = 4'096;
constexpr std::int32_t kMany = 1'000'000;

std::int64_t now_micros() {
  return std::chrono::duration_cast<std::chrono::microseconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

std::optional<std::int32_t> number_of(std::string_view id) {
  std::int32_t value = 0;
  const auto [end, error] = std::from_chars(id.data(), id.data() + id.size(), value);
  const bool is_number = error == std::errc{} && end == id.data() + id.size() && value >= 0;
  return is_number && value < kMany ? std::optional(value) : std::nullopt;
}

bool is_id(std::string_view id) { return id == kInteractiveStep || number_of(id).has_value(); }

/// A plain file of the directory's owner, never waited for: a pipe or a device would hold us up.
Fd open_plain(int directory, const std::string& name, int flags) {
  Fd file(::openat(directory, name.c_str(), flags | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  struct stat found {};
  if (file.is_open() &&
      (::fstat(file.get(), &found) != 0 || !S_ISREG(found.st_mode) || found.st_size > kMaxBytes))
    file.reset();
  return file;
}

std::optional<std::string> read_small(int directory, const std::string& name) {
  const Fd file = open_plain(directory, name, O_RDONLY);
  if (!file.is_open()) return std::nullopt;
  std::string bytes(static_cast<std::size_t>(kMaxBytes), '\0');
  std::size_t size = 0;
  while (size < bytes.size()) {
    const ssize_t got = ::read(file.get(), bytes.data() + size, bytes.size() - size);
    if (got <= 0) break;
    size += static_cast<std::size_t>(got);
  }
  bytes.resize(size);
  return bytes;
}

/// The process that keeps the step lives: nobody else can lock its file.
bool is_kept(int directory, const std::string& id) {
  const Fd file = open_plain(directory, id + ".lock", O_RDONLY);
  return file.is_open() && ::flock(file.get(), LOCK_SH | LOCK_NB) != 0;
}

/// Within bounds that any reader can bear, whatever the file says.
void tame(StepView& step) {
  if (step.name.size() > kMaxNameBytes) step.name.resize(kMaxNameBytes);
  step.tasks = std::clamp(step.tasks, 0, kMany);
  step.cpus = std::clamp(step.cpus, 0, kMany);
  for (auto* list : {&step.devices, &step.cores}) {
    if (list->size() > kMaxDevices) list->resize(kMaxDevices);
    std::erase_if(*list, [](std::int32_t each) { return each < 0 || each > kMany; });
  }
  step.begun = std::max<std::int64_t>(0, step.begun);
  step.ended = std::max<std::int64_t>(0, step.ended);
  step.exit_code = std::clamp(step.exit_code, 0, 255);
  step.signal = std::clamp(step.signal, 0, 64);
  if (!(step.cpu_seconds >= 0 && step.cpu_seconds < 1e12)) step.cpu_seconds = 0;
  step.max_rss_kib = std::clamp<std::int64_t>(step.max_rss_kib, 0, std::int64_t{1} << 40U);
  step.pid = std::clamp<std::int64_t>(step.pid, 0, std::int64_t{1} << 31U);
}

std::vector<std::string> ids_in(const std::string& path) {
  std::vector<std::string> ids;
  DIR* listing = ::opendir(path.c_str());
  if (listing == nullptr) return ids;
  while (const dirent* entry = ::readdir(listing)) {
    const std::string_view name(entry->d_name);
    if (!name.ends_with(".json")) continue;
    const std::string_view id = name.substr(0, name.size() - 5);
    if (is_id(id)) ids.emplace_back(id);
    if (ids.size() >= 10 * kMostSteps) break;
  }
  ::closedir(listing);
  std::ranges::sort(ids, [](const std::string& a, const std::string& b) {
    return std::pair(number_of(a).value_or(-1), a) < std::pair(number_of(b).value_or(-1), b);
  });
  return ids;
}

std::optional<StepView> read_step(int directory, const std::string& id) {
  const bool is_alive = is_kept(directory, id);  // before the file: it may end in between
  const auto bytes = read_small(directory, id + ".json");
  if (!bytes) return std::nullopt;
  const auto json = nlohmann::json::parse(*bytes, nullptr, false);
  if (!json.is_object()) return std::nullopt;
  StepView step;
  wire::read(json, step);
  step.id = id;
  tame(step);
  if (!is_alive && step.state == StepState::Running) step.state = StepState::Cancelled;
  return step;
}

std::string text_of(const StepView& step) { return wire::to_sorted_json(step); }

/// `wanted` of those that are held and not used, lowest first; nothing if there are not enough.
std::optional<std::vector<std::int32_t>> pick(const std::vector<std::int32_t>& held,
                                              const std::set<std::int32_t>& used,
                                              std::size_t wanted) {
  std::vector<std::int32_t> picked;
  for (const std::int32_t each : held)
    if (picked.size() < wanted && !used.contains(each)) picked.push_back(each);
  return picked.size() == wanted ? std::optional(std::move(picked)) : std::nullopt;
}

/// What steps that share nothing use at this moment.
struct InUse {
  std::set<std::int32_t> devices, cores;
  std::int32_t cpus = 0;

  void add(const StepView& step) {
    if (!step.shares_devices) devices.insert(step.devices.begin(), step.devices.end());
    cores.insert(step.cores.begin(), step.cores.end());
    cpus += step.cpus;
  }
};

/// Its devices and cores; false: not all of them are free.
bool share_out(StepView& step, const StepWish& wish, const JobGrant& grant, const InUse& used) {
  const InUse nothing;
  const InUse& taken = wish.overlaps ? nothing : used;
  // Who asks for no GPU sees all of the job's, as under Slurm; who asks has them alone.
  step.shares_devices = !wish.gpus;
  auto devices = wish.gpus
                     ? pick(grant.devices, taken.devices, static_cast<std::size_t>(*wish.gpus))
                     : std::optional(grant.devices);
  if (!devices) return false;
  step.devices = *std::move(devices);
  step.cpus = wish.cpus.value_or(grant.cpus);
  if (wish.overcommits && grant.cpus > 0) step.cpus = std::min(step.cpus, grant.cpus);
  if (grant.cpus == 0 || step.cpus == 0) return true;
  if (taken.cpus + step.cpus > grant.cpus) return false;
  if (!wish.cpus || grant.cores.empty()) return true;  // all of them, or any: nothing to bind to
  auto cores = pick(grant.cores, taken.cores, static_cast<std::size_t>(step.cpus));
  if (!cores) return false;
  step.cores = *std::move(cores);
  return true;
}

bool is_same_type(std::string_view a, std::string_view b) {
  return std::ranges::equal(a, b, [](char one, char other) {
    return std::tolower(static_cast<unsigned char>(one)) ==
           std::tolower(static_cast<unsigned char>(other));
  });
}

}  // namespace

std::optional<StepRefusal> refusal_of(const StepWish& wish, const JobGrant& grant) {
  using Kind = StepRefusal::Kind;
  for (const std::string& node : wish.nodes)
    if (std::ranges::find(grant.nodes, node) == grant.nodes.end())
      return StepRefusal{Kind::Nodes, fmt::format("its job does not run on {}", node)};
  if (wish.gpus && static_cast<std::size_t>(*wish.gpus) > grant.devices.size())
    return StepRefusal{Kind::Devices, fmt::format("it wants {} GPUs, its job holds {}", *wish.gpus,
                                                  grant.devices.size())};
  const auto is_its_type = [&](const std::string& type) {
    return is_same_type(type, grant.gpu_type);
  };
  if (!wish.gpu_types.empty() && !grant.gpu_type.empty() &&
      std::ranges::none_of(wish.gpu_types, is_its_type))
    return StepRefusal{Kind::Devices,
                       fmt::format("it wants {}, its job holds {}",
                                   fmt::join(wish.gpu_types, " or "), grant.gpu_type)};
  if (wish.cpus && grant.cpus > 0 && *wish.cpus > grant.cpus && !wish.overcommits)
    return StepRefusal{Kind::Cores,
                       fmt::format("it wants {} cores, its job holds {}", *wish.cpus, grant.cpus)};
  if (grant.most_tasks > 0 && wish.tasks > grant.most_tasks && !wish.overcommits)
    return StepRefusal{Kind::Cores,
                       fmt::format("it has {} tasks, its job {} cores (--overcommit allows it)",
                                   wish.tasks, grant.most_tasks)};
  return std::nullopt;
}

Result<void> StepEntry::finish(const StepView& ended) {
  view_ = ended;
  if (view_.ended == 0) view_.ended = now_micros();
  BERTH_TRY_VOID(put_file(fmt::format("{}/{}.json", directory_, view_.id), text_of(view_)));
  lock_.reset();
  return {};
}

Result<std::optional<StepEntry>> StepBook::try_begin(const StepWish& wish,
                                                     const JobGrant& grant) const {
  if (const auto refused = refusal_of(wish, grant)) return fail(refused->why);
  const Fd directory(::open(directory_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!directory.is_open()) return fail_with_errno(directory_, "open the directory of steps");
  const Fd whole(
      ::openat(directory.get(), "lock", O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (!whole.is_open() || ::flock(whole.get(), LOCK_EX) != 0)
    return fail_with_errno(directory_ + "/lock", "lock it");

  InUse used;
  std::int32_t next = 0;
  for (const std::string& id : ids_in(directory_)) {
    if (const auto number = number_of(id)) next = std::max(next, *number + 1);
    // Of the many that are over only the locks are looked at.
    if (!is_kept(directory.get(), id)) continue;
    const auto step = read_step(directory.get(), id);
    if (step && step->state == StepState::Running && !step->overlaps) used.add(*step);
  }
  StepView step;
  step.id = wish.id.empty() ? fmt::format("{}", next) : wish.id;
  step.name = wish.name;
  step.tasks = wish.tasks;
  step.overlaps = wish.overlaps;
  step.begun = now_micros();
  step.pid = ::getpid();
  if (!share_out(step, wish, grant, used)) return std::nullopt;

  Fd lock(::openat(directory.get(), (step.id + ".lock").c_str(),
                   O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (!lock.is_open() || ::flock(lock.get(), LOCK_EX) != 0)
    return fail_with_errno(fmt::format("{}/{}.lock", directory_, step.id), "lock it");
  BERTH_TRY_VOID(put_file(fmt::format("{}/{}.json", directory_, step.id), text_of(step)));
  return StepEntry(directory_, std::move(lock), std::move(step));
}

std::vector<StepView> read_steps(const std::string& path) {
  std::vector<StepView> steps;
  const Fd directory(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!directory.is_open()) return steps;
  for (const std::string& id : ids_in(path)) {
    if (steps.size() >= kMostSteps) break;
    if (auto step = read_step(directory.get(), id)) steps.push_back(*std::move(step));
  }
  return steps;
}

}  // namespace berth
