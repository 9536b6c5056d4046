#include "api/server_core.h"

#include <sys/resource.h>

#include <algorithm>

#include <fmt/chrono.h>
#include <fmt/format.h>

namespace berth::api {

namespace {

std::size_t descriptors_of_this_process() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return SIZE_MAX;
  return static_cast<std::size_t>(limit.rlim_cur);
}

}  // namespace

ServerCore::ServerCore(Service& service, const ServerOptions& options)
    : limits(options.limits),
      workers(options.workers),
      mailbox(std::make_shared<Mailbox>(io)),
      api(service, options.api),
      service_(service),
      limiter_(fitted(options.limits.connections, descriptors_of_this_process())),
      log_(options.log) {}

Holder ServerCore::holder_of(const Peer& peer) {
  if (!peer.is_local) return stranger_at(peer.address);
  return holder_of(service_.caller_of_peer(peer.uid, peer.gid));
}

Holder ServerCore::holder_of(const Caller& caller) {
  return {caller.role == Role::Admin ? CallerClass::Admins : CallerClass::Users, caller.user};
}

bool ServerCore::has_room_for(const Holder& holder) {
  const ConnectionLimiter::Answer answer = limiter_.ask(holder, std::chrono::steady_clock::now());
  if (answer.gives_way) {
    note(Loss::Cut, answer.cause, holder.name);
    std::static_pointer_cast<ConnectionBase>(answer.gives_way)->close();
  }
  if (!answer.may_enter) note(Loss::Refused, answer.cause, holder.name);
  return answer.may_enter;
}

void ServerCore::add(std::shared_ptr<ConnectionBase> connection, Holder holder) {
  limiter_.enter(connection, std::move(holder), std::chrono::steady_clock::now());
  connections.insert(std::move(connection));
  ++api.meter().connections;
}

bool ServerCore::reseat(const std::shared_ptr<ConnectionBase>& connection, Holder holder) {
  if (!has_room_for(holder)) return false;
  limiter_.enter(connection, std::move(holder), std::chrono::steady_clock::now());
  return true;
}

void ServerCore::drop(const std::shared_ptr<ConnectionBase>& connection) {
  if (connections.erase(connection) == 0) return;
  --api.meter().connections;
  limiter_.leave(connection);
}

bool ServerCore::take_memory(const std::string& who, std::size_t bytes) {
  const auto held = memory_.find(who);
  const std::size_t now = held == memory_.end() ? 0 : held->second;
  if (now + bytes > limits.body_bytes_of_one) {
    note(Loss::Refused, "bodies", who);
    return false;
  }
  memory_[who] = now + bytes;
  return true;
}

void ServerCore::give_memory(const std::string& who, std::size_t bytes) {
  const auto held = memory_.find(who);
  if (held == memory_.end()) return;
  held->second -= std::min(bytes, held->second);
  if (held->second == 0) memory_.erase(held);
}

void ServerCore::out_of_descriptors() {
  note(Loss::Refused, "descriptors", "");
  if (const auto connection = limiter_.most_dispensable())
    std::static_pointer_cast<ConnectionBase>(connection)->close();
}

void ServerCore::note(Loss loss, std::string_view cause, std::string_view who) {
  const std::string_view what = loss == Loss::Refused ? "a connection was refused"
                                : loss == Loss::Cut   ? "a connection was cut for a new one"
                                                      : "a request did not come in time";
  if (loss == Loss::Refused) api.meter().refused(cause);
  if (loss == Loss::Cut) api.meter().cut(cause);
  if (log_ == nullptr) return;
  const auto unsaid = log_limit_.admit(cause);
  if (unsaid) {
    BERTH_LOG(*log_, Warn, "api", what, {"cause", cause}, {"who", who}, {"unsaid", *unsaid});
  }
}

const std::string& ServerCore::date() {
  const std::time_t now = std::time(nullptr);
  if (now != dated_) {
    dated_ = now;
    date_ = fmt::format("{:%a, %d %b %Y %H:%M:%S} GMT", fmt::gmtime(now));
  }
  return date_;
}

std::string ServerCore::next_request_id() { return fmt::format("{:x}-{:x}", begun_, ++requests_); }

}  // namespace berth::api
