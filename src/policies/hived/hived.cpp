#include "policies/hived/hived.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <utility>
#include <vector>

#include "policies/hived/tenant_cells.h"
#include "policies/kit/waiting_jobs.h"

namespace berth {
namespace hived {

class Hived final : public Policy {
 public:
  explicit Hived(Ownership ownership) : ownership_(std::move(ownership)) {}
  [[nodiscard]] std::string_view name() const noexcept override { return "hived"; }
  /// It shares nothing, but it cannot do without devices.
  [[nodiscard]] PolicyTraits traits() const noexcept override {
    return {.preempts = true, .shares_devices = true};
  }
  void begin(const View& view) override { cells_.emplace(view.cluster.cluster(), ownership_); }
  void on_arrival(const View& view, JobId job) override;
  void on_departure(const View& view, JobId job) override;
  void on_requeue(const View& view, JobId job) override;
  /// Those who were on the node have not left yet: it is acted on with the next decision.
  void on_capacity_change(const View&, NodeId node) override { changed_.push_back(node); }
  void decide(const View& view, Plan& plan, Rng& rng) override;

 private:
  /// The tenant in whose cells the job may run; nothing: it can only be a guest.
  [[nodiscard]] std::optional<TenantId> guarantor_of(const View& view, JobId job) const;
  void stop_waiting(const View& view, JobId job);
  [[nodiscard]] bool start_on_cells(Plan& plan, JobId job, PoolId pool, std::int32_t gpus,
                                    Reason reason);
  [[nodiscard]] bool start_guaranteed(const View& view, Plan& plan, JobId job, TenantId tenant);
  [[nodiscard]] bool keep_found(const View& view, Plan& plan, JobId job);
  [[nodiscard]] bool start_guest(const View& view, Plan& plan, JobId job);
  [[nodiscard]] bool start_loose(Plan& plan, JobId job);

  Ownership ownership_;
  std::optional<TenantCells> cells_;
  WaitingJobs<TenantId> waiting_;  // for cells of their own
  WaitingByShape may_be_guests_;   // all who wait
  std::vector<JobId> newcomers_;   // since the last decision
  std::vector<NodeId> changed_;    // went down or came up since the last decision
  std::vector<Slice> slices_;      // scratch
};

std::optional<TenantId> Hived::guarantor_of(const View& view, JobId job) const {
  const JobRequest& request = view.request(job);
  const std::string_view group = view.text(request.group);
  const auto tenant = cells_->find(group.empty() ? view.text(request.user) : group);
  return tenant && cells_->owns_enough(*tenant, view.shape(job)) ? tenant : std::nullopt;
}

void Hived::on_arrival(const View& view, JobId job) {
  if (const auto tenant = guarantor_of(view, job)) waiting_.push(*tenant, job);
  may_be_guests_.push(view.jobs.shape[job], job);
  newcomers_.push_back(job);
}

void Hived::stop_waiting(const View& view, JobId job) {
  if (const auto tenant = guarantor_of(view, job)) waiting_.forget(*tenant, job);
  may_be_guests_.forget(view.jobs.shape[job], job);
}

void Hived::on_departure(const View& view, JobId job) {
  stop_waiting(view, job);
  cells_->leave(job);
}

void Hived::on_requeue(const View& view, JobId job) {
  cells_->leave(job);
  on_arrival(view, job);
}

/// Takes the devices of the job's cells; where cores or memory are short nothing is taken.
bool Hived::start_on_cells(Plan& plan, JobId job, PoolId pool, std::int32_t gpus, Reason reason) {
  cells_->slices_of(job, gpus, slices_);
  if (plan.try_start_on(job, pool, slices_, reason)) return true;
  cells_->leave(job);
  return false;
}

bool Hived::start_guaranteed(const View& view, Plan& plan, JobId job, TenantId tenant) {
  const Shape& shape = view.shape(job);
  for (std::uint32_t chain = 0; chain < cells_->chains(); ++chain) {
    const PoolId pool = cells_->pool(chain);
    if (std::ranges::find(shape.pools, pool) == shape.pools.end()) continue;
    const bool has_cells = cells_->take_own(job, tenant, chain, shape.gpus);
    for (const JobId guest : cells_->put_out()) {
      plan.preempt(guest, Reason::Guarantee);
      on_arrival(view, guest);
    }
    if (has_cells && start_on_cells(plan, job, pool, shape.gpus, Reason::Guarantee)) return true;
  }
  return false;
}

/// A job that has cells of its own is a guest here all the same: whoever needs these puts it out,
/// and it goes to its own.
bool Hived::keep_found(const View& view, Plan& plan, JobId job) {
  if (plan.found_gpus(job) != view.gpus(job) || view.gpus(job) == 0) return false;
  if (!cells_->take_devices(job, plan.found_on(job))) return false;
  if (plan.try_keep(job)) return true;
  cells_->leave(job);
  return false;
}

bool Hived::start_guest(const View& view, Plan& plan, JobId job) {
  const Shape& shape = view.shape(job);
  return std::ranges::any_of(shape.pools, [&](PoolId pool) {
    return cells_->take_as_guest(job, pool, shape.gpus) &&
           start_on_cells(plan, job, pool, shape.gpus, Reason::Order);
  });
}

/// A gang that its cores or memory keep out of every cell may still fit where nobody is: it is put
/// there by the run's placement and takes the whole of its nodes.
bool Hived::start_loose(Plan& plan, JobId job) {
  if (plan.cluster().free_gpus() < plan.cluster().usable_gpus()) return false;
  if (!plan.try_start(job, Reason::Order)) return false;
  cells_->take_nodes(job, plan.slices(job));
  return true;
}

void Hived::decide(const View& view, Plan& plan, Rng&) {
  for (const NodeId node : changed_) cells_->set_in_service(node, view.cluster.is_up(node));
  changed_.clear();
  for (const JobId job : std::exchange(newcomers_, {})) {
    if (view.jobs.is_waiting(job) && keep_found(view, plan, job)) stop_waiting(view, job);
  }
  for (std::uint32_t i = 0; i < cells_->tenants(); ++i) {
    const TenantId tenant{i};
    while (!waiting_.empty(tenant)) {
      const JobId job = waiting_.top(tenant).job;
      if (!start_guaranteed(view, plan, job, tenant)) break;
      stop_waiting(view, job);
    }
  }
  // In order of arrival: who waits for its own cells may be a guest meanwhile. Guests alone start
  // from here on and room only shrinks, so one that finds no place speaks for its likes.
  may_be_guests_.pass(
      [&](ShapeId shape) {
        return plan.cluster().free_gpus() > 0 && plan.has_room(view.shapes[shape]);
      },
      [&](JobId job) {
        if (!start_guest(view, plan, job) && !start_loose(plan, job)) return Tried::NoPlace;
        if (const auto tenant = guarantor_of(view, job)) waiting_.forget(*tenant, job);
        return Tried::Started;
      });
}

namespace {

template <class T>
bool read(std::string_view text, T& number) {
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), number);
  return code == std::errc{} && end == text.data() + text.size() && number > 0;
}

/// "8x2+4x1": two cells of eight devices and one of four.
bool read_cells(std::string_view text, OwnedCells& cells) {
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find('+', begin), text.size());
    const std::string_view part = text.substr(begin, end - begin);
    begin = end + 1;
    const std::size_t cross = part.find('x');
    if (cross == std::string_view::npos) return false;
    std::int32_t size = 0;
    std::int32_t count = 0;
    if (!read(part.substr(0, cross), size) || !read(part.substr(cross + 1), count)) return false;
    cells.emplace_back(size, count);
  }
  return true;
}

Result<std::unique_ptr<Policy>> make(const PolicyEntry&, const Params& params) {
  Ownership ownership;
  const std::string_view text = params.text("cells");
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    const std::string_view part = text.substr(begin, end - begin);
    begin = end + 1;
    const std::size_t colon = part.find(':');
    const std::string tenant(part.substr(0, colon));
    const bool is_good = colon != std::string_view::npos && !tenant.empty() &&
                         read_cells(part.substr(colon + 1), ownership[tenant]);
    if (!is_good)
      return params.wrong("cells", "must be TENANT:SIZExCOUNT[+SIZExCOUNT…], as in lab:8x2+4x1");
  }
  return std::make_unique<Hived>(std::move(ownership));
}

}  // namespace
}  // namespace hived

PolicyEntry hived_entry() {
  return {.name = "hived",
          .summary =
              "tenants own cells with their topology; others are preemptible guests on free ones",
          .params =
              {{"cells", "",
                "TENANT:SIZExCOUNT[+SIZExCOUNT…], comma separated: cells of SIZE devices a tenant "
                "owns; tenant is a job's group, else its user"}},
          .make = hived::make};
}

}  // namespace berth
