-- Health of a custom resource from its standard conditions, for Argo CD.
local status = obj.status
if status == nil or status.conditions == nil then
  return {status = "Progressing", message = "nothing is reported yet"}
end
local generation = obj.metadata.generation
local observed = status.observedGeneration
if generation ~= nil and observed ~= nil and observed < generation then
  return {
    status = "Progressing",
    message = string.format("generation %d is not observed yet, only %d", generation, observed),
  }
end
if status.failureMessage ~= nil and status.failureMessage ~= "" then
  return {status = "Degraded", message = status.failureMessage}
end
local decisive = {
  {"Stalled", "Degraded"},
  {"Reconciling", "Progressing"},
  {"RollingOut", "Progressing"},
  {"Paused", "Suspended"},
  {"Ready", "Healthy"},
}
for _, rule in ipairs(decisive) do
  for _, condition in ipairs(status.conditions) do
    if condition.type == rule[1] and condition.status == "True" then
      return {status = rule[2], message = condition.message or ""}
    end
  end
end
for _, condition in ipairs(status.conditions) do
  if condition.status == "False" and condition.severity == "Error" then
    return {status = "Degraded", message = condition.message or ""}
  end
end
for _, condition in ipairs(status.conditions) do
  if condition.type == "Ready" then
    return {status = "Progressing", message = condition.message or ""}
  end
end
return {status = "Progressing", message = ""}
