#include "training/hub.h"

#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <cstring>

#include <fmt/format.h>

namespace berth {

namespace {

constexpr std::uint64_t kListener = 0;
constexpr std::uint64_t kWaker = 1;
constexpr double kNewsInterval = 1;
constexpr double kSamePace = 1.06;  // within this factor a pace is the same
constexpr double kDrift = 0.02;  // of the whole training, between where it is and is thought to be

double now_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

bool add_to(const Descriptor& poller, int fd, std::uint64_t id) {
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.u64 = id;
  return ::epoll_ctl(poller.get(), EPOLL_CTL_ADD, fd, &event) == 0;
}

}  // namespace

TrainingHub::TrainingHub(HubOptions options, HubCalls calls, Descriptor listener)
    : options_(std::move(options)),
      calls_(std::move(calls)),
      listener_(std::move(listener)),
      poller_(::epoll_create1(EPOLL_CLOEXEC)),
      waker_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}

Result<std::unique_ptr<TrainingHub>> TrainingHub::open(const HubOptions& options, HubCalls calls) {
  BERTH_TRY(Descriptor listener, listen_on(options.path));
  std::unique_ptr<TrainingHub> hub{new TrainingHub(options, std::move(calls), std::move(listener))};
  BERTH_TRY_VOID(hub->start());
  return hub;
}

Result<void> TrainingHub::start() {
  const bool ready = poller_.is_open() && waker_.is_open() &&
                     add_to(poller_, listener_.get(), kListener) &&
                     add_to(poller_, waker_.get(), kWaker);
  if (!ready) return fail(fmt::format("{}: cannot watch: {}", options_.path, std::strerror(errno)));
  thread_ = std::thread{[this] { run(); }};
  return {};
}

TrainingHub::~TrainingHub() {
  if (!thread_.joinable()) return;
  {
    const std::lock_guard lock{mutex_};
    over_ = true;
  }
  wake();
  thread_.join();
  ::unlink(options_.path.c_str());
}

void TrainingHub::wake() const {
  const std::uint64_t one = 1;
  static_cast<void>(::write(waker_.get(), &one, sizeof one));
}

// --- the thread

void TrainingHub::run() {
  std::array<epoll_event, 64> events;
  for (;;) {
    const int count = ::epoll_wait(poller_.get(), events.data(), static_cast<int>(events.size()),
                                   milliseconds_to_sleep(now_seconds()));
    {
      const std::lock_guard lock{mutex_};
      if (over_) return;
    }
    const double now = now_seconds();
    for (int i = 0; i < count; ++i) {
      const epoll_event& event = events[static_cast<std::size_t>(i)];
      if (event.data.u64 == kListener) {
        welcome_newcomers(now);
      } else if (event.data.u64 == kWaker) {
        std::uint64_t ignored = 0;
        static_cast<void>(::read(waker_.get(), &ignored, sizeof ignored));
      } else {
        handle(event.data.u64, event.events, now);
      }
    }
    deliver();
    drop_silent(now);
    pass_on_news(now);
  }
}

/// For ever, unless news wait for their second to be over or somebody has to say hello.
int TrainingHub::milliseconds_to_sleep(double now) const {
  double wait = 1e9;
  if (!strangers_.empty())
    wait = peers_.at(*strangers_.begin()).since + options_.hello_seconds - now;
  // News of many are passed on together: nobody's second is over to the millisecond.
  const std::lock_guard lock{mutex_};
  if (!news_.empty()) wait = std::min(wait, passed_on_at_ + kNewsInterval - now);
  return wait > 1e6 ? -1 : static_cast<int>(std::ceil(std::max(0.0, wait) * 1000));
}

void TrainingHub::welcome_newcomers(double now) {
  while (auto accepted = accept_from(listener_)) {
    const std::uint32_t uid = accepted->uid;
    Peer peer{*std::move(accepted), now, options_.peer};
    const auto mine = peers_of_.find(uid);
    const bool too_many = peers_.size() >= options_.most_connections ||
                          (mine != peers_of_.end() && mine->second >= options_.most_per_user);
    if (too_many) {
      static_cast<void>(peer.send(error_line("too many connections")));
      continue;
    }
    const PeerId id = next_peer_++;
    peer.id = id;
    if (!add_to(poller_, peer.fd(), id)) continue;
    peer.interest = EPOLLIN;
    peers_.emplace(id, std::move(peer));
    strangers_.insert(id);
    ++peers_of_[uid];
    const std::lock_guard lock{mutex_};
    connections_ = peers_.size();
  }
}

void TrainingHub::handle(PeerId id, std::uint32_t what, double now) {
  const auto found = peers_.find(id);
  if (found == peers_.end()) return;
  Peer& peer = found->second;
  bool stays = (what & EPOLLOUT) == 0 || peer.flush() == Peer::State::Open;
  if (stays && (what & (EPOLLIN | EPOLLHUP | EPOLLERR)) != 0) {
    lines_.clear();
    // What was said before the end is heard.
    const bool is_open = peer.read(now, lines_) == Peer::State::Open;
    for (const std::string& line : lines_) stays = stays && handle_line(peer, line, now);
    stays = stays && is_open;
    if (peer.job != 0 && !peer.broken_limit().empty()) {
      const std::lock_guard lock{mutex_};
      note_nonsense(jobs_[peer.job], peer.job, "cut off: " + peer.broken_limit());
    }
  }
  if (stays) {
    watch(id, peer);
  } else {
    drop(id);
  }
}

void TrainingHub::watch(PeerId id, Peer& peer) {
  const std::uint32_t wanted = peer.has_more_to_say() ? EPOLLIN | EPOLLOUT : EPOLLIN;
  if (wanted == peer.interest) return;
  peer.interest = wanted;
  epoll_event event{};
  event.events = wanted;
  event.data.u64 = id;
  static_cast<void>(::epoll_ctl(poller_.get(), EPOLL_CTL_MOD, peer.fd(), &event));
}

void TrainingHub::drop(PeerId id) {
  const auto found = peers_.find(id);
  if (found == peers_.end()) return;
  const auto mine = peers_of_.find(found->second.uid);
  if (--mine->second == 0) peers_of_.erase(mine);
  const JobNumber number = found->second.job;
  const bool resizes = found->second.resizes;
  const std::string token = found->second.token;
  strangers_.erase(id);
  peers_.erase(found);  // closing takes it out of the poller
  const std::lock_guard lock{mutex_};
  // Counted are those who speak for the attempt that runs now.
  if (const auto job = jobs_.find(number); job != jobs_.end() && job->second.token == token) {
    --job->second.listeners;
    if (resizes) --job->second.resizers;
  }
  connections_ = peers_.size();
}

void TrainingHub::drop_silent(double now) {
  std::vector<PeerId> silent;
  for (const PeerId id : strangers_) {
    const Peer& peer = peers_.at(id);
    if (now - peer.since < options_.hello_seconds) break;
    if (peer.job == 0) silent.push_back(id);
  }
  for (const PeerId id : silent) drop(id);
}

/// A thousand jobs that go on as they did are no reason to wake the engine.
bool TrainingHub::is_unexpected(const Job& job, double now) {
  const auto progress = job.meter.measured(now);
  const auto& told = job.passed_on;
  if (!progress || !told.anything) return progress.has_value() != told.anything;
  if (progress->per_second > 0) {
    if (told.per_second <= 0) return true;
    const double ratio = progress->per_second / told.per_second;
    if (ratio > kSamePace || ratio < 1 / kSamePace) return true;
  }
  const double said_at = now - progress->seconds_ago;
  const double expected = told.iterations + told.per_second * (said_at - told.at);
  return job.whole > 0 && std::abs(progress->iterations - expected) > kDrift * job.whole;
}

void TrainingHub::pass_on_news(double now) {
  std::vector<std::pair<JobNumber, TrainingFigures>> news;
  bool has_learned = false, has_progressed = false;
  {
    const std::lock_guard lock{mutex_};
    has_learned = std::exchange(learned_told_, model_.revision()) != model_.revision();
    const bool is_time = now - passed_on_at_ >= kNewsInterval;
    if (is_time && !news_.empty()) passed_on_at_ = now;
    for (const JobNumber number : is_time ? std::exchange(news_, {}) : std::set<JobNumber>{}) {
      const auto found = jobs_.find(number);
      if (found == jobs_.end()) continue;
      Job& job = found->second;
      news.emplace_back(number, job.history.figures(now));
      if (job.phase && job.phase != job.phase_told) {
        job.phase_told = job.phase;
        phases_.emplace_back(number, *job.phase);
        has_learned = true;
      }
      if (!is_unexpected(job, now)) continue;
      const auto progress = job.meter.measured(now);
      job.passed_on = {};
      if (progress)
        job.passed_on = {now - progress->seconds_ago, progress->iterations, progress->per_second,
                         true};
      progressed_.insert(number);
      has_progressed = true;
    }
  }
  if (calls_.nonsense) {
    for (const auto& [number, why] : nonsense_) calls_.nonsense(number, why);
  }
  nonsense_.clear();
  if (calls_.changed) {
    for (const auto& [number, figures] : news) calls_.changed(number, figures);
  }
  if (has_learned && calls_.learned) calls_.learned();
  if (has_progressed && calls_.progressed) calls_.progressed();
}

Phase TrainingHub::phase(JobNumber number) const {
  const std::lock_guard lock{mutex_};
  const auto found = jobs_.find(number);
  return found == jobs_.end() ? Phase::Training
                              : found->second.phase_told.value_or(Phase::Training);
}

void TrainingHub::see_phase(JobNumber number, Phase phase) {
  {
    const std::lock_guard lock{mutex_};
    Job& job = jobs_[number];
    if (job.tells_phases || job.phase_told == phase) return;
    job.phase = job.phase_told = phase;
    phases_.emplace_back(number, phase);
  }
  if (calls_.learned) calls_.learned();
}

std::vector<std::pair<JobNumber, Phase>> TrainingHub::take_phases() {
  const std::lock_guard lock{mutex_};
  return std::exchange(phases_, {});
}

// --- what is told

void TrainingHub::post(JobNumber job, std::string line) {
  {
    const std::lock_guard lock{mutex_};
    outbox_.emplace_back(job, std::move(line));
  }
  wake();
}

void TrainingHub::deliver() {
  std::vector<std::pair<JobNumber, std::string>> outbox;
  {
    const std::lock_guard lock{mutex_};
    outbox.swap(outbox_);
  }
  if (outbox.empty()) return;
  std::vector<PeerId> gone;
  for (auto& [id, peer] : peers_) {
    bool is_open = true;
    for (const auto& [job, line] : outbox) {
      if (peer.job == job && is_open) is_open = peer.send(line) == Peer::State::Open;
    }
    if (is_open) {
      watch(id, peer);
    } else {
      gone.push_back(id);
    }
  }
  for (const PeerId id : gone) drop(id);
}

void TrainingHub::tell(JobNumber number, const Terms& terms) {
  {
    const std::lock_guard lock{mutex_};
    Job& job = jobs_[number];
    model_.set_cores(number, terms.cores_milli / 1000.0);
    const bool is_same = job.terms && job.terms->sub_steps == terms.sub_steps &&
                         job.terms->batch == terms.batch &&
                         job.terms->cores_milli == terms.cores_milli;
    job.terms = terms;
    if (is_same || job.token.empty()) return;  // who connects later is told then
    outbox_.emplace_back(number, terms_line(terms));
  }
  wake();
}

bool TrainingHub::is_listening(JobNumber number) const {
  const std::lock_guard lock{mutex_};
  const auto job = jobs_.find(number);
  return job != jobs_.end() && job->second.listeners > 0;
}

bool TrainingHub::can_resize(JobNumber number) const {
  const std::lock_guard lock{mutex_};
  const auto job = jobs_.find(number);
  return job != jobs_.end() && job->second.resizers > 0;
}

void TrainingHub::ask_resize(JobNumber number, const ResizeAsk& ask) {
  {
    const std::lock_guard lock{mutex_};
    jobs_[number].asked = ask;
  }
  post(number, resize_line(ask));
}

void TrainingHub::ask_checkpoint(JobNumber job, double deadline_seconds, AfterCheckpoint then) {
  post(job, checkpoint_line(deadline_seconds, then));
}

void TrainingHub::announce_size(JobNumber job, std::int32_t gpus) { post(job, resize_line(gpus)); }

void TrainingHub::forget(JobNumber job) {
  const std::lock_guard lock{mutex_};
  jobs_.erase(job);
  progressed_.erase(job);
  news_.erase(job);
  model_.forget(job);
}

// --- what is known

std::optional<TrainingReport> TrainingHub::report(JobNumber number) const {
  const std::lock_guard lock{mutex_};
  const auto job = jobs_.find(number);
  if (job == jobs_.end() || !job->second.meter.is_believed()) return std::nullopt;
  return job->second.history.report();
}

std::optional<MeasuredProgress> TrainingHub::progress(JobNumber number) const {
  const std::lock_guard lock{mutex_};
  const auto job = jobs_.find(number);
  if (job == jobs_.end()) return std::nullopt;
  return job->second.meter.measured(now_seconds());
}

void TrainingHub::conditions_changed(JobNumber number) {
  const std::lock_guard lock{mutex_};
  const auto job = jobs_.find(number);
  if (job == jobs_.end()) return;
  job->second.meter.conditions_changed();
  job->second.passed_on.per_second = 0;  // the next pace is news
}

void TrainingHub::take_progressed(std::vector<JobNumber>& jobs) {
  const std::lock_guard lock{mutex_};
  jobs.insert(jobs.end(), progressed_.begin(), progressed_.end());
  progressed_.clear();
}

bool TrainingHub::has_saved(JobNumber number) const {
  const auto figures = view(number);
  return figures && figures->checkpoint_iteration;
}

void TrainingHub::losses(JobNumber number, std::int64_t first, std::vector<double>& losses) const {
  const std::lock_guard lock{mutex_};
  const auto job = jobs_.find(number);
  if (job != jobs_.end()) job->second.history.losses(first, losses);
}

std::optional<TrainingFigures> TrainingHub::view(JobNumber number) const {
  const std::lock_guard lock{mutex_};
  const auto job = jobs_.find(number);
  if (job == jobs_.end() || !job->second.history.has_spoken()) return std::nullopt;
  return job->second.history.figures(now_seconds());
}

std::size_t TrainingHub::connections() const {
  const std::lock_guard lock{mutex_};
  return connections_;
}

std::vector<JobNumber> TrainingHub::take_changed() {
  const std::lock_guard lock{mutex_};
  return model_.take_changed();
}

void TrainingHub::take_remembered(std::vector<std::pair<std::string, CorePoints>>& models) {
  const std::lock_guard lock{mutex_};
  model_.take_remembered(models);
}

void TrainingHub::recall(const std::string& model, CorePoints points, double age_seconds) {
  const std::lock_guard lock{mutex_};
  model_.recall(model, std::move(points), now_seconds() - age_seconds);
}

std::optional<std::int32_t> TrainingHub::probe(JobNumber job, std::int32_t most) {
  const std::lock_guard lock{mutex_};
  return model_.probe(job, most, now_seconds());
}

std::optional<CpuCurve> TrainingHub::curve(JobNumber job) const {
  const std::lock_guard lock{mutex_};
  return model_.curve(job);
}

std::optional<double> TrainingHub::seconds_per_iteration(JobNumber job, double cores) const {
  const std::lock_guard lock{mutex_};
  return model_.seconds_per_iteration(job, cores);
}

}  // namespace berth
