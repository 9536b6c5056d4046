#include "exec/host_fixture.h"

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <thread>

#include <unistd.h>

#include "exec/process_table.h"

namespace berth::host_test {

namespace fs = std::filesystem;

bool eventually(const std::function<bool()>& condition) {
  const auto deadline = std::chrono::steady_clock::now() + kPatience;
  while (!condition()) {
    if (std::chrono::steady_clock::now() > deadline) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  return true;
}

std::string content(const std::string& path) {
  std::ifstream in(path);
  std::ostringstream all;
  all << in.rdbuf();
  return all.str();
}

bool exists(const std::string& path) { return fs::exists(fs::symlink_status(path)); }

pid_t pid_in(const std::string& path) {
  pid_t pid = 0;
  const bool is_there = eventually([&] {
    const std::string text = content(path);
    if (!text.ends_with('\n')) return false;
    pid = static_cast<pid_t>(std::strtol(text.c_str(), nullptr, 10));
    return pid > 0;
  });
  EXPECT_TRUE(is_there) << path;
  return pid;
}

bool is_running(pid_t pid) {
  const auto row = process_row(pid);
  return row && row->is_alive();
}

std::vector<pid_t> shims_of(const std::string& run_dir) {
  std::vector<pid_t> shims;
  for (const ProcessRow& row : all_processes()) {
    const std::string words = content("/proc/" + std::to_string(row.pid) + "/cmdline");
    if (row.is_alive() && words.find("berth-shim") != std::string::npos &&
        words.find('\0' + run_dir + '\0') != std::string::npos)
      shims.push_back(row.pid);
  }
  return shims;
}

void HostTest::SetUp() {
  std::string name = (fs::temp_directory_path() / "berth-host-XXXXXX").string();
  ASSERT_NE(::mkdtemp(name.data()), nullptr);
  root_ = name;
  fs::permissions(root_, fs::perms(0755));
  open();
}

void HostTest::TearDown() {
  if (!host_) open();
  for (const AttemptId attempt : host_->present()) {
    const auto found = host_->look(1, attempt);
    if (found && found->found == Found::Alive) {
      host_->resume(attempt);
      host_->stop(attempt, Host::Stop::Kill, 0);
      EXPECT_TRUE(eventually([&] {
        const auto now = host_->look(1, attempt);
        return now && now->found != Found::Alive;
      }));
    }
  }
  host_.reset();
  fs::remove_all(root_);
  EXPECT_TRUE(eventually([&] { return shims_of(root_ + "/run").empty(); })) << "a shim is left";
}

void HostTest::open(std::vector<std::string> cgroup_roots) {
  host_.reset();
  auto opened = LocalHost::open({.run_dir = root_ + "/run",
                                 .shim = BERTH_SHIM,
                                 .cgroup_roots = std::move(cgroup_roots),
                                 .log = nullptr},
                                [this](HostEvent event) { note(std::move(event)); });
  ASSERT_TRUE(opened) << opened.error().text();
  host_ = std::move(*opened);
}

LaunchOrder HostTest::command(std::vector<std::string> words, std::uint64_t counter) const {
  LaunchOrder order;
  order.job = 100 + counter;
  order.attempt = {1, counter};
  order.command = std::move(words);
  order.workdir = root_;
  order.env = {{"PATH", "/usr/bin:/bin"}};
  order.output = root_ + "/out";
  order.uid = ::geteuid();
  order.gid = ::getegid();
  order.grace_seconds = 1;
  return order;
}

LaunchOrder HostTest::script(const std::string& text, std::uint64_t counter) const {
  LaunchOrder order = command({}, counter);
  order.script = "#!/bin/sh\n" + text + "\n";
  return order;
}

void HostTest::note(HostEvent event) {
  const std::lock_guard lock(mutex_);
  events_.push_back(std::move(event));
  news_.notify_all();
}

HostEvent HostTest::wait_for(HostEventKind kind, AttemptId attempt) {
  std::unique_lock lock(mutex_);
  std::optional<HostEvent> found;
  news_.wait_for(lock, kPatience, [&] {
    for (const HostEvent& event : events_)
      if (event.kind == kind && event.attempt == attempt) found = event;
    return found.has_value();
  });
  EXPECT_TRUE(found) << "no event of kind " << static_cast<int>(kind);
  return found.value_or(HostEvent{});
}

std::size_t HostTest::count(HostEventKind kind) {
  const std::lock_guard lock(mutex_);
  std::size_t seen = 0;
  for (const HostEvent& event : events_) seen += event.kind == kind ? 1 : 0;
  return seen;
}

ExitRecord HostTest::run(const LaunchOrder& order) {
  const auto launched = host_->launch(order);
  EXPECT_TRUE(launched) << launched.error().text();
  return wait_for(HostEventKind::Ended, order.attempt).exit;
}

}  // namespace berth::host_test
