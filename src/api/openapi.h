// The OpenAPI 3.0 document of the API. Paths and parameters are written from the route table, the
// keys of a job from job_spec_fields(), everything else from its description (wire/).
#pragma once

#include <string>

namespace berth::api {

[[nodiscard]] const std::string& openapi_json();

}  // namespace berth::api
