#include "policies/bsbf/partners.h"

#include <algorithm>
#include <tuple>

namespace berth::bsbf {

void PartnerIndex::assign(JobId job, const PartnerGroup& group) {
  const auto [entry, is_new] =
      ids_.try_emplace(group, BucketId{static_cast<std::uint32_t>(buckets_.size())});
  if (is_new) {
    buckets_.push_back({.group = group, .alone = ByFinish{&memory_}, .sharing = {}});
    of_pool_[group.pool].push_back(entry->second);
  }
  where_[job].bucket = entry->second;
}

void PartnerIndex::add_alone(JobId job, Time finish) {
  Where& where = where_[job];
  buckets_[where.bucket].alone.emplace(finish, job);
  where.finish = finish;
  where.kept = true;
}

void PartnerIndex::add_sharing(JobId job, Time now) {
  Where& where = where_[job];
  auto& sharing = buckets_[where.bucket].sharing;
  sharing.insert(std::ranges::lower_bound(sharing, job, {}, &Sharing::job),
                 {.job = job, .filed = now});
  where.finish = kNever;
  where.kept = true;
}

void PartnerIndex::remove(JobId job) {
  Where& where = where_[job];
  if (!where.kept) return;
  Bucket& bucket = buckets_[where.bucket];
  if (where.finish == kNever) {
    bucket.sharing.erase(std::ranges::lower_bound(bucket.sharing, job, {}, &Sharing::job));
  } else {
    bucket.alone.erase({where.finish, job});
  }
  where.kept = false;
}

void PartnerSearch::reset(const Newcomer& newcomer, Time now) {
  newcomer_ = newcomer;
  now_ = now;
  limit_ = std::numeric_limits<double>::infinity();
  streams_.clear();
  singles_.clear();
}

double PartnerSearch::least_left(const Beside& terms) const noexcept {
  return least_partner_left(newcomer_.length * terms.stretch, newcomer_.length, terms.slowdown);
}

bool PartnerSearch::Candidate::comes_before(const Candidate& other) const noexcept {
  if (rank != other.rank) return rank < other.rank;
  return std::tuple(other_size, partner.job) < std::tuple(other.other_size, other.partner.job);
}

PartnerSearch::Candidate PartnerSearch::candidate(const Sized& job, const Beside& terms,
                                                  double left) const noexcept {
  const PairSetting pair{
      .sharing = average_if_sharing(left, newcomer_.length * terms.stretch, terms.slowdown),
      .waiting = average_if_waiting(left, newcomer_.length),
      .sub_steps = terms.sub_steps};
  return {.rank = newcomer_.rank == PartnerRank::AverageTime ? pair.sharing : -pair.benefit(),
          .other_size = job.gpus != newcomer_.gpus,
          .partner = {.job = job.job, .setting = pair}};
}

bool PartnerSearch::look(Stream& stream) const {
  if (stream.at == stream.end) return false;
  const auto& [finish, job] = *stream.at;
  const double left = to_seconds(finish - now_);
  stream.best = candidate({job, stream.bucket->group.gpus}, stream.terms, left);
  const PairSetting& pair = stream.best.partner.setting;
  return left > 0 && is_better(pair.sharing, pair.waiting);
}

void PartnerSearch::add_bucket(const PartnerIndex::Bucket& bucket, const Beside& terms,
                               double least) {
  if (bucket.alone.empty()) return;
  const double from = std::max(0.0, surely_below(least));
  const Time last = bucket.alone.rbegin()->first;
  if (to_seconds(last - now_) < from) return;  // not even the longest is worth it
  Stream stream{.bucket = &bucket, .terms = terms, .at = {}, .end = bucket.alone.end(), .best = {}};
  if (newcomer_.rank == PartnerRank::Benefit) {  // the longest ones gain most
    stream.at = bucket.alone.lower_bound({last, JobId{}});
    if (look(stream)) streams_.push_back(stream);
    return;
  }
  stream.at = bucket.alone.lower_bound({now_ + seconds_to_duration(from), JobId{}});
  while (stream.at != stream.end && !look(stream)) {
    if (to_seconds(stream.at->first - now_) > surely_above(least)) return;
    ++stream.at;
  }
  if (stream.at == stream.end) return;
  streams_.push_back(stream);
  if (newcomer_.wanted == 1) limit_rank(stream.best.rank);
}

void PartnerSearch::limit_rank(double rank) noexcept {
  if (newcomer_.rank == PartnerRank::AverageTime) limit_ = std::min(limit_, rank);
}

void PartnerSearch::add_single(const Sized& job, const Beside& terms, double left) {
  const Candidate one = candidate(job, terms, left);
  if (!is_better(one.partner.setting.sharing, one.partner.setting.waiting)) return;
  if (singles_.size() >= newcomer_.wanted) {
    if (singles_.empty() || !one.comes_before(singles_.front())) return;
    std::ranges::pop_heap(singles_, &Candidate::comes_before);
    singles_.pop_back();
  }
  singles_.push_back(one);
  std::ranges::push_heap(singles_, &Candidate::comes_before);
  if (singles_.size() >= newcomer_.wanted) limit_rank(singles_.front().rank);
}

void PartnerSearch::order_singles() {
  std::ranges::sort(singles_,
                    [](const Candidate& a, const Candidate& b) { return b.comes_before(a); });
}

/// By benefit from the longest to the shortest, but those of one length by their ids.
bool PartnerSearch::advance(Stream& stream) const {
  const Time finish = stream.at->first;
  ++stream.at;
  if (newcomer_.rank == PartnerRank::Benefit &&
      (stream.at == stream.end || stream.at->first != finish)) {
    const auto& alone = stream.bucket->alone;
    const auto group = alone.lower_bound({finish, JobId{}});
    if (group == alone.begin()) return false;
    stream.at = alone.lower_bound({std::prev(group)->first, JobId{}});
  }
  return look(stream);
}

std::optional<Partner> PartnerSearch::next() {
  if (newcomer_.wanted == 0) return std::nullopt;
  const auto first = std::ranges::min_element(
      streams_, [](const Stream& a, const Stream& b) { return a.best.comes_before(b.best); });
  const bool none_alone = first == streams_.end();
  if (none_alone && singles_.empty()) return std::nullopt;
  --newcomer_.wanted;
  if (none_alone || (!singles_.empty() && singles_.back().comes_before(first->best))) {
    const Partner best = singles_.back().partner;
    singles_.pop_back();
    return best;
  }
  const Partner best = first->best.partner;
  if (!advance(*first)) {
    *first = streams_.back();
    streams_.pop_back();
  }
  return best;
}

}  // namespace berth::bsbf
