// The table of everything that can be asked: method, path, who may, what it takes. The router reads
// it, the check of query parameters reads it, and the OpenAPI document is written from it, so that
// none of them can disagree.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "api/message.h"
#include "api/target.h"

namespace berth::api {

class Api;
struct Admitted;
class Meter;
struct ApiOptions;

/// What a handler gets to see.
struct Call {
  Service& service;
  const Admitted& request;
  const std::string& body;
  const ApiOptions& options;
  Meter& meter;
};

enum class Access : std::uint8_t { Known, Open, Metrics };  // Metrics: open if the options say so
enum class Takes : std::uint8_t { Nothing, Json };
/// Quick answers come from memory; the others wait for a disk or for a scheduling pass.
enum class RouteCost : std::uint8_t { Quick, Slow };

struct Parameter {
  std::string_view name;
  std::string_view kind;  // of OpenAPI: string, integer, boolean
  std::string_view meaning;
};

struct Route {
  Method method{};
  std::string_view path;  // "/api/v1/jobs/{job}"
  std::string_view name;  // operationId, and the label in the metrics
  std::string_view summary;
  RouteCost cost = RouteCost::Quick;
  Takes takes = Takes::Nothing;
  std::string_view body_schema;    // name in the document
  std::string_view answer_schema;  // the same; empty: not JSON
  std::vector<Parameter> query;
  Answered (*answer)(const Call&) = nullptr;
  void (*answer_later)(const Call&, Reply) = nullptr;  // instead of the above
  Access access = Access::Known;
};

/// The table, written out (route_table.cpp); routes() is the one that is kept.
[[nodiscard]] std::vector<Route> make_routes();
[[nodiscard]] const std::vector<Route>& routes();

struct Match {
  const Route* route = nullptr;        // nothing: see allowed
  std::vector<std::string> arguments;  // decoded
  std::string allowed;                 // methods of this path, "GET, POST"; empty: no such path
};
/// HEAD is answered by GET's route.
[[nodiscard]] Match match_route(Method method, const Target& target);

}  // namespace berth::api
