#include "exec/shim_watch.h"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <unistd.h>

#include "exec/claim.h"
#include "exec/exits.h"
#include "exec/fields.h"

namespace berth {

namespace {
constexpr std::uint64_t kWake = 0, kFiles = 1;  // tokens
constexpr std::chrono::seconds kFirstPause{1}, kLongestPause{60};
}  // namespace

ShimWatch::ShimWatch(RunDir directory, Sink sink)
    : directory_(std::move(directory)), sink_(std::move(sink)) {}

ShimWatch::~ShimWatch() {
  if (!thread_.joinable()) return;
  {
    const std::lock_guard lock(mutex_);
    is_stopping_ = true;
  }
  wake();
  thread_.join();
}

Result<void> ShimWatch::start() {
  poll_.reset(::epoll_create1(EPOLL_CLOEXEC));
  wake_.reset(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  files_.reset(::inotify_init1(IN_CLOEXEC | IN_NONBLOCK));
  if (!poll_.is_open() || !wake_.is_open() || !files_.is_open())
    return fail_with_errno(directory_.path(), "watch it");
  for (const auto& [fd, token] : {std::pair{wake_.get(), kWake}, {files_.get(), kFiles}}) {
    epoll_event event{.events = EPOLLIN, .data = {.u64 = token}};
    if (::epoll_ctl(poll_.get(), EPOLL_CTL_ADD, fd, &event) != 0)
      return fail_with_errno(directory_.path(), "watch it");
  }
  thread_ = std::thread([this] { run(); });
  return {};
}

bool ShimWatch::has(AttemptId attempt) const {
  const std::lock_guard lock(mutex_);
  return table_.contains(attempt);
}

void ShimWatch::add_made(JobNumber job, AttemptId attempt, Fd pipe) {
  ::fcntl(pipe.get(), F_SETFL, O_NONBLOCK);
  const std::lock_guard lock(mutex_);
  Watched& entry = table_[attempt];
  entry.job = job;
  entry.pipe = std::move(pipe);
  listen(entry.pipe.get(), attempt);
}

void ShimWatch::add_found(JobNumber job, AttemptId attempt, ShimHandle shim) {
  const std::lock_guard lock(mutex_);
  const auto [at, is_new] = table_.try_emplace(attempt);
  if (!is_new) return;
  Watched& entry = at->second;
  entry.job = job;
  entry.shim = std::move(shim);
  // First the watch, then the look: a start in between is seen by one of them.
  entry.file_watch =
      ::inotify_add_watch(files_.get(), directory_.claim(attempt).c_str(), IN_MODIFY);
  if (entry.file_watch >= 0) by_file_[entry.file_watch] = attempt;
  look_for_start(attempt, entry, news_);
  listen(entry.shim->fd(), attempt);
  wake();
}

bool ShimWatch::send(AttemptId attempt, ShimCommand command) {
  const std::lock_guard lock(mutex_);
  const auto entry = table_.find(attempt);
  if (entry == table_.end()) return true;
  if (entry->second.shim) return entry->second.shim->send(command) || errno == ESRCH;
  entry->second.waiting.push_back(command);
  return true;
}

void ShimWatch::look_again(JobNumber job, AttemptId attempt) {
  const std::lock_guard lock(mutex_);
  Later& later = later_[attempt];
  later.job = job;
  later.pause = std::clamp(later.pause * 2, kFirstPause, kLongestPause);
  later.due = Clock::now() + later.pause;
  later.is_due = true;
  wake();
}

/// Milliseconds, as epoll counts them; -1: nothing is to come.
int ShimWatch::until_next() const {
  const std::lock_guard lock(mutex_);
  std::optional<Clock::time_point> next;
  for (const auto& [attempt, later] : later_)
    if (later.is_due && (!next || later.due < *next)) next = later.due;
  if (!next) return -1;
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(*next - Clock::now());
  return static_cast<int>(std::max<std::int64_t>(0, left.count()));
}

void ShimWatch::tell_due(std::vector<HostEvent>& news) {
  const auto now = Clock::now();
  for (auto& [attempt, later] : later_) {
    if (!later.is_due || later.due > now) continue;
    later.is_due = false;
    news.push_back({HostEventKind::LaunchLost, later.job, attempt, 0, {}});
  }
}

void ShimWatch::forget(AttemptId attempt) {
  const std::lock_guard lock(mutex_);
  later_.erase(attempt);
}

void ShimWatch::run() {
  for (;;) {
    epoll_event ready[64];
    const int count = ::epoll_wait(poll_.get(), ready, 64, until_next());
    std::vector<HostEvent> news;
    {
      const std::lock_guard lock(mutex_);
      if (is_stopping_) return;
      for (int i = 0; i < count; ++i) handle(ready[i].data.u64, news);
      tell_due(news);
      news.insert(news.begin(), news_.begin(), news_.end());
      news_.clear();
    }
    for (HostEvent& event : news) sink_(std::move(event));
  }
}

void ShimWatch::handle(std::uint64_t token, std::vector<HostEvent>& news) {
  if (token == kWake) {
    std::uint64_t count = 0;
    static_cast<void>(::read(wake_.get(), &count, sizeof count));
    return;
  }
  if (token == kFiles) return read_file_watches(news);
  const auto known = listened_.find(token);
  if (known == listened_.end()) return;  // closed by an event before this one
  const auto [attempt, fd] = known->second;
  const auto entry = table_.find(attempt);
  if (entry == table_.end()) return;
  if (entry->second.shim && entry->second.shim->fd() == fd) return end(entry, news);
  read_pipe(entry, news);
}

void ShimWatch::read_pipe(Table::iterator entry, std::vector<HostEvent>& news) {
  Watched& watched = entry->second;
  char part[256];
  ssize_t got = 0;
  while ((got = ::read(watched.pipe.get(), part, sizeof part)) > 0)
    watched.text.append(part, static_cast<std::size_t>(got));
  const bool is_over = got == 0 || (errno != EAGAIN && errno != EINTR);
  for (std::size_t end_of_line = 0; (end_of_line = watched.text.find('\n')) != std::string::npos;) {
    handle_line(entry->first, watched, watched.text.substr(0, end_of_line), news);
    watched.text.erase(0, end_of_line + 1);
  }
  if (!is_over) return;
  ignore(watched.pipe.get());
  watched.pipe.reset();
  if (!watched.shim) end(entry, news);  // gone before it claimed, or so soon that we saw it no more
}

void ShimWatch::handle_line(AttemptId attempt, Watched& entry, const std::string& line,
                            std::vector<HostEvent>& news) {
  if (line == "claimed") return begin_control(attempt, entry);
  const auto pid =
      line.starts_with("started ") ? integer_of(std::string_view(line).substr(8)) : std::nullopt;
  if (!pid || entry.is_started) return;
  entry.is_started = true;
  news.push_back({HostEventKind::Started, entry.job, attempt, *pid, {}});
}

void ShimWatch::begin_control(AttemptId attempt, Watched& entry) {
  entry.shim = ShimHandle::open(directory_, attempt);
  if (!entry.shim) return;  // gone already: the pipe's end tells
  listen(entry.shim->fd(), attempt);
  for (const ShimCommand command : entry.waiting) entry.shim->send(command);
  entry.waiting.clear();
}

void ShimWatch::read_file_watches(std::vector<HostEvent>& news) {
  alignas(inotify_event) char bytes[4096];
  ssize_t got = 0;
  while ((got = ::read(files_.get(), bytes, sizeof bytes)) > 0) {
    for (ssize_t at = 0; at < got;) {
      inotify_event event{};
      std::memcpy(&event, bytes + at, sizeof event);
      at += static_cast<ssize_t>(sizeof event + event.len);
      const auto known = by_file_.find(event.wd);
      if (known == by_file_.end()) continue;
      const auto entry = table_.find(known->second);
      if (entry != table_.end()) look_for_start(entry->first, entry->second, news);
    }
  }
}

void ShimWatch::look_for_start(AttemptId attempt, Watched& entry, std::vector<HostEvent>& news) {
  const auto claim = read_claim(directory_, attempt);
  if (entry.is_started || !claim || !*claim || (*claim)->job == 0) return;
  entry.is_started = true;
  news.push_back({HostEventKind::Started, entry.job, attempt, (*claim)->job, {}});
  ::inotify_rm_watch(files_.get(), entry.file_watch);
  by_file_.erase(entry.file_watch);
  entry.file_watch = -1;
}

void ShimWatch::end(Table::iterator entry, std::vector<HostEvent>& news) {
  // Words that were still in the pipe come before the end.
  if (entry->second.pipe.is_open() && entry->second.shim) {
    ignore(entry->second.shim->fd());
    entry->second.shim.reset();
    return read_pipe(entry, news);
  }
  const auto attempt = entry->first;
  HostEvent event{HostEventKind::LaunchLost, entry->second.job, attempt, 0, {}};
  if (auto record = read_exit(directory_, attempt); record && *record) {
    event.kind = HostEventKind::Ended;
    event.exit = std::move(**record);
    event.exit.job = entry->second.job;
  }
  if (entry->second.shim) ignore(entry->second.shim->fd());
  if (entry->second.file_watch >= 0) {
    ::inotify_rm_watch(files_.get(), entry->second.file_watch);
    by_file_.erase(entry->second.file_watch);
  }
  table_.erase(entry);
  news.push_back(std::move(event));
}

void ShimWatch::listen(int fd, AttemptId attempt) {
  listened_[++last_token_] = {attempt, fd};
  epoll_event event{.events = EPOLLIN, .data = {.u64 = last_token_}};
  ::epoll_ctl(poll_.get(), EPOLL_CTL_ADD, fd, &event);
}

void ShimWatch::ignore(int fd) {
  std::erase_if(listened_, [&](const auto& each) { return each.second.second == fd; });
  ::epoll_ctl(poll_.get(), EPOLL_CTL_DEL, fd, nullptr);
}

void ShimWatch::wake() const {
  const std::uint64_t one = 1;
  static_cast<void>(::write(wake_.get(), &one, sizeof one));
}

}  // namespace berth
