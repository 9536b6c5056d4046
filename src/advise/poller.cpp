#include "advise/poller.h"

#include <pwd.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "base/time.h"

namespace berth::advise {

namespace {

using std::chrono::milliseconds;
using Steady = std::chrono::steady_clock;

constexpr milliseconds kLongestPause{60'000};
constexpr int kShareOfTime = 20;  // a poll takes at most one part in so many of the time
constexpr std::size_t kMostEnded = 10'000;
constexpr std::int64_t kClockSlack = 120;  // seconds between two machines' clocks

constexpr slurm::Version kOldestTried{.year = 22, .month = 5, .micro = 0};
constexpr slurm::Version kNewestTried{.year = 26, .month = 5, .micro = 99};

std::string own_name() {
  const passwd* entry = getpwuid(geteuid());
  return entry != nullptr ? entry->pw_name : fmt::format("{}", geteuid());
}

/// Slurm hides nothing from root and from the user that it runs as ("slurm(64030)").
bool sees_everything(const slurm::Config& config) {
  const std::string user = config.value("SlurmUser");
  return geteuid() == 0 || user.substr(0, user.find('(')) == own_name();
}

bool hides(const slurm::Config& config, std::string_view what) {
  return std::ranges::count(names_in(config.value("PrivateData")), what) > 0;
}

/// Whether what people are shown of the two differs.
bool looks_alike(const slurm::Job& a, const slurm::Job& b) {
  return a.phase == b.phase && a.completing == b.completing && a.configuring == b.configuring &&
         a.reason == b.reason && (a.priority == 0) == (b.priority == 0);
}

const char* what_happened(const slurm::Job& before, const slurm::Job& after) {
  if (is_over(after.phase) && !is_over(before.phase)) return "end";
  const bool starts =
      before.phase == slurm::JobPhase::Pending && after.phase == slurm::JobPhase::Running;
  return starts ? "started" : "change";
}

}  // namespace

Poller::Poller(Parts parts) : parts_(std::move(parts)) {}

Poller::~Poller() { stop(); }

void Poller::start() {
  thread_ = std::jthread{[this](const std::stop_token& stop) { run(stop); }};
}

void Poller::stop() {
  if (!thread_.joinable()) return;
  thread_.request_stop();
  wake_.notify_all();
  thread_.join();
}

void Poller::run(const std::stop_token& stop) {
  while (!stop.stop_requested()) {
    const milliseconds pause = poll_once();
    std::unique_lock lock{mutex_};
    wake_.wait_for(lock, stop, pause, [] { return false; });
  }
}

SightPtr Poller::sight() const {
  const std::lock_guard lock{mutex_};
  return sight_;
}

std::vector<std::string> Poller::troubles() const {
  const std::lock_guard lock{mutex_};
  std::vector<std::string> all;
  if (unread_since_ > 0) {
    const std::int64_t wall = parts_.wall();
    const auto ago = [&](std::int64_t then) {
      return human_duration(static_cast<double>(std::max<std::int64_t>(0, wall - then)) /
                            static_cast<double>(kMicro));
    };
    const std::string seen = sight_->at > 0 ? fmt::format("what follows is {} old", ago(sight_->at))
                                            : std::string{"nothing of it is known yet"};
    all.push_back(fmt::format("Slurm does not answer since {}: {}", ago(unread_since_), seen));
  }
  for (const auto& [what, text] : troubles_) all.push_back(text);
  return all;
}

PollFigures Poller::figures() const {
  const std::lock_guard lock{mutex_};
  return figures_;
}

std::vector<slurm::Job> Poller::ended() const {
  const std::lock_guard lock{mutex_};
  return {ended_.begin(), ended_.end()};
}

// --- one reading

milliseconds Poller::poll_once() {
  const auto began = Steady::now();
  Sight next = *sight();
  if (!has_read_rarely_ || began - rarely_read_ >= parts_.options.rarely) {
    read_rarely(next);
    rarely_read_ = began;
  }
  const bool is_read = read_often(next);
  failed_in_a_row_ = is_read ? 0 : failed_in_a_row_ + 1;
  const double seconds = std::chrono::duration<double>(Steady::now() - began).count();
  publish(std::move(next), seconds);
  return pause_after(seconds, is_read);
}

/// What a reading costs Slurm is felt as the time that it takes: whoever is slow is left alone
/// longer.
milliseconds Poller::pause_after(double seconds, bool is_read) const {
  const milliseconds poll = parts_.options.poll;
  if (!is_read) {
    const auto factor = std::int64_t{1} << std::min<std::uint32_t>(failed_in_a_row_, 6);
    return std::min(poll * factor, std::max(poll, kLongestPause));
  }
  const milliseconds slow{static_cast<std::int64_t>(seconds * 1'000 * kShareOfTime)};
  return std::max(poll, std::min(slow, kLongestPause));
}

template <class Value, class Take>
bool Poller::take(const char* what, slurm::Linked<Value> said, Take into) {
  if (said) {
    forget(what);
    into(*std::move(said));
    return true;
  }
  {
    const std::lock_guard lock{mutex_};
    ++figures_.failures[what];
  }
  note(what, fmt::format("Slurm's {} could not be read: {}", what, said.error().text));
  return false;
}

void Poller::read_rarely(Sight& next) {
  bool all = true;
  all &= take("version", parts_.link.version(), [&](slurm::Version v) { next.version = v; });
  all &=
      take("settings", parts_.link.config(), [&](slurm::Config c) { next.config = std::move(c); });
  all &= take("partitions", parts_.link.partitions(),
              [&](std::vector<slurm::Partition> p) { next.partitions = std::move(p); });
  all &= take("reservations", parts_.link.reservations(),
              [&](std::vector<slurm::Reservation> r) { next.reservations = std::move(r); });
  all &= take("topology", parts_.link.topology(),
              [&](std::vector<slurm::Switch> t) { next.topology = std::move(t); });
  // What was not there is asked for again with the next poll, not in a minute.
  has_read_rarely_ = all || has_read_rarely_;
  note_lasting(next);
}

bool Poller::read_often(Sight& next) {
  const bool has_jobs =
      take("jobs", parts_.link.jobs(), [&](std::optional<std::vector<slurm::Job>> said) {
        next.at = parts_.wall();
        if (!said) return;
        std::ranges::stable_sort(*said, {}, [](const slurm::Job& job) { return job.key.job; });
        next.jobs = std::make_shared<const std::vector<slurm::Job>>(*std::move(said));
      });
  const bool has_nodes =
      take("nodes", parts_.link.nodes(), [&](std::optional<std::vector<slurm::Node>> said) {
        if (!said) return;
        next.nodes = std::make_shared<const std::vector<slurm::Node>>(*std::move(said));
      });
  return has_jobs && (has_nodes || hides(next.config, "nodes"));
}

// --- what stands in the way

void Poller::note(const std::string& what, const std::string& text) {
  {
    const std::lock_guard lock{mutex_};
    auto& known = troubles_[what];
    if (known == text) return;
    known = text;
  }
  BERTH_LOG(parts_.log, Warn, "slurm", "cannot tell everything", {"what", what}, {"why", text});
}

void Poller::forget(const std::string& what) {
  {
    const std::lock_guard lock{mutex_};
    if (troubles_.erase(what) == 0) return;
  }
  BERTH_LOG(parts_.log, Info, "slurm", "all is well again", {"what", what});
}

/// What stays so until somebody changes a setting.
void Poller::note_lasting(const Sight& sight) {
  if (sight.version && (*sight.version < kOldestTried || *sight.version > kNewestTried))
    note("untried", fmt::format("Slurm {} is not one that Berth was tried with (22.05 to 26.05): "
                                "answers may lack something",
                                to_string(*sight.version)));
  else
    forget("untried");
  if (hides(sight.config, "jobs") && !sees_everything(sight.config))
    note("hidden", fmt::format("Slurm shows {} no jobs of others (PrivateData={}): queue and why "
                               "know those of {} alone",
                               own_name(), sight.config.value("PrivateData"), own_name()));
  else
    forget("hidden");
  const std::string accounting = sight.config.value("AccountingStorageType");
  if (!sight.config.all.empty() && (accounting.empty() || accounting.ends_with("/none")))
    note("accounting",
         "Slurm keeps no accounting: history tells what was seen to end since Berth "
         "began to look");
  else
    forget("accounting");
}

// --- what has changed

void Poller::publish(Sight next, double seconds) {
  const SightPtr before = sight();
  const auto after = std::make_shared<const Sight>(std::move(next));
  {
    const std::lock_guard lock{mutex_};
    sight_ = after;
    ++figures_.polls;
    figures_.last_seconds = seconds;
    figures_.worst_seconds = std::max(figures_.worst_seconds, seconds);
    if (failed_in_a_row_ == 0)
      unread_since_ = 0;
    else if (unread_since_ == 0)
      unread_since_ = parts_.wall();
  }
  if (after->jobs != before->jobs) compare(*before, *after);
}

/// Both lists are in order of ids. A known id with another submit time is another job.
void Poller::compare(const Sight& before, const Sight& after) {
  const bool is_first = !before.jobs;
  std::int64_t latest = 0;
  std::uint64_t vanished = 0;
  const auto old = before.all_jobs();
  auto at = old.begin();
  const auto tell = [&](const slurm::Job& job, const char* what) {
    if (parts_.changed) parts_.changed(after, {job, what});
  };
  const auto is_gone = [&](const slurm::Job& job) { vanished += is_over(job.phase) ? 0U : 1U; };
  for (const slurm::Job& job : after.all_jobs()) {
    latest = std::max({latest, job.key.submitted, is_over(job.phase) ? job.ended : 0});
    if (is_over(job.phase) && !job.completing) keep_ended(job);
    for (; at != old.end() && at->key.job < job.key.job; ++at) is_gone(*at);
    const bool is_known = at != old.end() && at->key.job == job.key.job;
    if (is_known) {
      // A requeue makes a new run of the same job; anything else a new job under an old id.
      const bool is_same =
          at->key.submitted == job.key.submitted || job.key.restarts > at->key.restarts;
      if (!is_same) is_gone(*at);
      if (!is_same || !looks_alike(*at, job))
        tell(job, is_same ? what_happened(*at, job) : "submit");
      ++at;
    } else if (!is_first) {
      tell(job, is_over(job.phase) ? "end" : "submit");
    }
  }
  for (; at != old.end(); ++at) is_gone(*at);
  const std::int64_t ahead = latest - after.at / kMicro;
  if (ahead > kClockSlack)
    note("clock", fmt::format("the clock of Slurm is {} ahead of ours: spans of time are wrong",
                              human_duration(static_cast<double>(ahead))));
  else
    forget("clock");
  const std::lock_guard lock{mutex_};
  figures_.vanished += vanished;
}

void Poller::keep_ended(const slurm::Job& job) {
  const std::lock_guard lock{mutex_};
  if (!ended_keys_.insert(job.key).second) return;
  ended_.push_back(job);
  if (ended_.size() <= kMostEnded) return;
  ended_keys_.erase(ended_.front().key);
  ended_.pop_front();
}

}  // namespace berth::advise
