-- Health of a Cluster API Cluster, of either API version.
local status = obj.status
if obj.spec ~= nil and obj.spec.paused == true then
  return {status = "Suspended", message = "the Cluster is paused"}
end
if status == nil or status.phase == nil then
  return {status = "Progressing", message = "nothing is reported yet"}
end
local generation = obj.metadata.generation
if generation ~= nil and status.observedGeneration ~= nil and status.observedGeneration < generation then
  return {status = "Progressing", message = "the newest spec is not observed yet"}
end
if status.phase == "Failed" then
  return {status = "Degraded", message = status.failureMessage or "the Cluster has failed"}
end
-- What the newer API version says stands in the older one below v1beta2.
local conditions = status.conditions or {}
if status.v1beta2 ~= nil and status.v1beta2.conditions ~= nil then
  conditions = status.v1beta2.conditions
end
for _, condition in ipairs(conditions) do
  if condition.type == "Available" and condition.status ~= "True" then
    return {status = "Progressing", message = condition.message or ""}
  end
end
if status.phase == "Provisioned" then
  return {status = "Healthy", message = ""}
end
return {status = "Progressing", message = "phase " .. status.phase}
