#include "support/fake_service.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/prometheus.h"
#include "support/fake_service_parts.h"

namespace berth::testing {

namespace {

constexpr std::size_t kQuestions = 100'000;  // remembered at most

}  // namespace

class FakeService::Listening final : public Service::Subscription {
 public:
  Listening(FakeService& service, std::uint64_t id) : service_(service), id_(id) {}
  ~Listening() override {
    const std::lock_guard lock(service_.mutex_);
    service_.listeners_.erase(id_);
  }

 private:
  FakeService& service_;
  std::uint64_t id_;
};

FakeService::FakeService() {
  for (const char* name : {"n1", "n2"}) {
    NodeView node{name, "up", "", "a100", 4, 0, 32, 0, 131'072, {}};
    node.devices.resize(4);
    nodes_.push_back(node);
  }
  cluster_.policy = "fifo";
  cluster_.version = "fake";
  cluster_.generation = 1;
  cluster_.started = now_wall();
  cluster_.gpus = 8;
  cluster_.queues = {{.name = "main"}, {.name = "night", .max_time_limit = 3'600}};
  committer_ = std::thread([this] { commit_loop(); });
}

FakeService::~FakeService() {
  {
    const std::lock_guard lock(mutex_);
    is_ending_ = true;
  }
  submitted_.notify_all();
  committer_.join();
}

void FakeService::note(const char* what, const Caller& caller) {
  if (questions_.size() < kQuestions) questions_.push_back({what, caller});
}

void FakeService::add_token(const std::string& text, const Caller& caller) {
  const std::lock_guard lock(mutex_);
  tokens_[text] = Token{{text, caller.user, caller.role, now_wall() / 1'000'000, 0}, caller};
}

void FakeService::add_peer(std::uint32_t uid, const Caller& caller) {
  const std::lock_guard lock(mutex_);
  peers_[uid] = caller;
}

void FakeService::run(JobNumber number) {
  const std::lock_guard lock(mutex_);
  JobView& job = jobs_.at(number);
  job.state = LiveState::Running;
  job.reason.clear();
  job.started = job.last_started = now_wall();
  job.attempts = 1;
  job.where = {{"n1", {0}, {}}};
  job.granted = 1;
  job.pid = 4'242;
  tell_state(job);
}

void FakeService::finish(JobNumber number, LiveState state, int exit_code) {
  const std::lock_guard lock(mutex_);
  JobView& job = jobs_.at(number);
  job.state = state;
  job.ended = now_wall();
  job.exit_code = exit_code;
  job.granted = 0;
  job.pid = 0;
  tell_state(job);
}

void FakeService::set_output(JobNumber number, const std::string& out, const std::string& error) {
  const std::lock_guard lock(mutex_);
  jobs_.at(number).output = out;
  jobs_.at(number).error = error;
}

void FakeService::happen(const std::string& kind, JobNumber job, const std::string& user,
                         const std::string& json) {
  const std::lock_guard lock(mutex_);
  tell(kind, job, user, json);
}

void FakeService::set_trouble(const std::string& text) {
  const std::lock_guard lock(mutex_);
  cluster_.trouble = text;
}

void FakeService::fail_with(std::optional<Fault> fault) {
  const std::lock_guard lock(mutex_);
  fault_ = std::move(fault);
}

void FakeService::hold_commits(bool is_held) {
  {
    const std::lock_guard lock(mutex_);
    is_held_ = is_held;
  }
  submitted_.notify_all();
}

void FakeService::keep_events(std::size_t count) {
  const std::lock_guard lock(mutex_);
  kept_ = count;
}

std::vector<FakeService::Question> FakeService::questions() const {
  const std::lock_guard lock(mutex_);
  return questions_;
}
std::size_t FakeService::subscribers() const {
  const std::lock_guard lock(mutex_);
  return listeners_.size();
}
std::size_t FakeService::commits() const {
  const std::lock_guard lock(mutex_);
  return commits_;
}
std::size_t FakeService::job_count() const {
  const std::lock_guard lock(mutex_);
  return jobs_.size();
}
ShareView FakeService::last_share() const {
  const std::lock_guard lock(mutex_);
  return shares_.empty() ? ShareView{} : shares_.back();
}

void FakeService::tell(const std::string& kind, JobNumber job, const std::string& user,
                       const std::string& json) {
  events_.push_back({++sequence_, kind, job, user, json});
  while (events_.size() > kept_) events_.pop_front();
  const ServiceEvent event{sequence_, kind, job, user, json};
  for (const auto& [id, listener] : listeners_) listener(event);
}

void FakeService::tell_state(const JobView& job) {
  tell("job", job.number, job.spec->user,
       fmt::format(R"({{"job":{},"state":"{}"}})", job.number, to_string(job.state)));
}

ClusterView FakeService::cluster(const Caller& caller) {
  const std::lock_guard lock(mutex_);
  note("cluster", caller);
  return cluster_;
}

std::vector<NodeView> FakeService::nodes(const Caller& caller) {
  const std::lock_guard lock(mutex_);
  note("nodes", caller);
  return nodes_;
}

Answer<NodeView> FakeService::set_node(const Caller& caller, const std::string& name,
                                       const std::string& state, const std::string& reason) {
  const std::lock_guard lock(mutex_);
  note("set_node", caller);
  if (caller.role < Role::Operator) return fault(FaultKind::Forbidden, "only operators do that");
  const auto node = std::ranges::find(nodes_, name, &NodeView::name);
  if (node == nodes_.end()) return fault(FaultKind::NotFound, "no such node");
  node->state = state == "resume" ? "up" : state == "drain" ? "drained" : state;
  node->reason = reason;
  tell("node", 0, "", fmt::format(R"({{"node":"{}","state":"{}"}})", name, node->state));
  return *node;
}

Answer<ClusterView> FakeService::set_policy(
    const Caller& caller, const std::string& policy,
    const std::vector<std::pair<std::string, std::string>>& settings) {
  const std::lock_guard lock(mutex_);
  note("set_policy", caller);
  if (caller.role < Role::Admin) return fault(FaultKind::Forbidden, "only admins do that");
  if (policy != "fifo" && policy != "srtf")
    return fault(FaultKind::BadRequest, fmt::format("policy: unknown '{}'", policy));
  cluster_.policy = policy;
  cluster_.settings = settings;
  return cluster_;
}

std::vector<ShareView> FakeService::shares(const Caller& caller) {
  const std::lock_guard lock(mutex_);
  note("shares", caller);
  return shares_;
}

Answer<ShareView> FakeService::set_share(const Caller& caller, const ShareView& share) {
  const std::lock_guard lock(mutex_);
  note("set_share", caller);
  if (caller.role < Role::Admin) return fault(FaultKind::Forbidden, "only admins do that");
  std::erase_if(shares_, [&](const ShareView& old) {
    return old.kind == share.kind && old.name == share.name;
  });
  shares_.push_back(share);
  return share;
}

Answer<std::string> FakeService::make_token(const Caller& caller, const TokenView& token) {
  const std::lock_guard lock(mutex_);
  note("make_token", caller);
  if (caller.role < token.role || (caller.user != token.user && caller.role < Role::Admin))
    return fault(FaultKind::Forbidden, "only admins make tokens for others");
  const std::string text = fmt::format("secret-{}", tokens_.size());
  tokens_[text] = Token{token, {token.user, 1'000, 1'000, token.role}};
  return text;
}

Answer<std::vector<TokenView>> FakeService::tokens(const Caller& caller) {
  const std::lock_guard lock(mutex_);
  note("tokens", caller);
  std::vector<TokenView> views;
  for (const auto& [text, token] : tokens_) {
    if (caller.role == Role::Admin || token.view.user == caller.user) views.push_back(token.view);
  }
  return views;
}

Answer<void> FakeService::revoke_token(const Caller& caller, const std::string& name) {
  const std::lock_guard lock(mutex_);
  note("revoke_token", caller);
  const auto count = std::erase_if(tokens_, [&](const auto& entry) {
    return entry.second.view.name == name &&
           (caller.role == Role::Admin || entry.second.view.user == caller.user);
  });
  if (count == 0) return fault(FaultKind::NotFound, "no such token");
  return {};
}

std::optional<Caller> FakeService::caller_of(const std::string& token) {
  const std::lock_guard lock(mutex_);
  const auto found = tokens_.find(token);
  if (found == tokens_.end()) return std::nullopt;
  return found->second.caller;
}

Caller FakeService::caller_of_peer(std::uint32_t uid, std::uint32_t gid) {
  const std::lock_guard lock(mutex_);
  const auto found = peers_.find(uid);
  if (found != peers_.end()) return found->second;
  return {fmt::format("uid{}", uid), uid, gid, Role::User};
}

std::unique_ptr<Service::Subscription> FakeService::subscribe(
    std::uint64_t after, std::function<void(const ServiceEvent&)> listener) {
  const std::lock_guard lock(mutex_);
  for (const ServiceEvent& event : events_) {
    if (event.sequence > after) listener(event);
  }
  const std::uint64_t id = next_listener_++;
  listeners_[id] = std::move(listener);
  return std::make_unique<Listening>(*this, id);
}

std::uint64_t FakeService::latest() const {
  const std::lock_guard lock(mutex_);
  return sequence_;
}

std::string FakeService::metrics() {
  const std::lock_guard lock(mutex_);
  PrometheusText text;
  text.gauge("berth_jobs", "Jobs known.", static_cast<double>(jobs_.size()));
  return text.str();
}

}  // namespace berth::testing
