// Writes what the Go libraries that everybody runs say of made-up conditions and objects, one JSON
// value a line: Cluster API's conditions, kstatus, kubectl wait, and Argo CD's Lua interpreter.
//
// The cases come from a fixed seed, so the output changes only with this file and the versions in
// go.mod. The argument is the Lua script of the health check.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand"
	"os"
	"regexp"
	"sort"
	"strings"
	"time"

	"github.com/gobuffalo/flect"
	lua "github.com/yuin/gopher-lua"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/cli-runtime/pkg/resource"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	"k8s.io/kubectl/pkg/cmd/wait"
	kstatus "sigs.k8s.io/cli-utils/pkg/kstatus/status"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"

	"k8s.io/apimachinery/pkg/api/meta"
)

var (
	random = rand.New(rand.NewSource(20260131))
	out    = json.NewEncoder(os.Stdout)
	epoch  = time.Unix(1767225600, 0).UTC()
)

type object map[string]any

func must(err error) {
	if err != nil {
		panic(err)
	}
}

func emit(value object) { must(out.Encode(value)) }

func pick[T any](values ...T) T { return values[random.Intn(len(values))] }

// holder is an object with conditions, as Cluster API sees one.
type holder struct {
	metav1.TypeMeta
	name       string
	first      bool
	conditions []metav1.Condition
}

func (h *holder) GetConditions() []metav1.Condition  { return h.conditions }
func (h *holder) GetName() string                    { return h.name }
func (h *holder) DeepCopyObject() runtime.Object     { copied := *h; return &copied }
func (h *holder) SetConditions(c []metav1.Condition) { h.conditions = c }
func (h *holder) GetLabels() map[string]string {
	if h.first {
		return map[string]string{clusterv1.MachineControlPlaneLabel: ""}
	}
	return nil
}

var messages = []string{
	"", "disk is full", "* a: b", "two\nlines", "* x\n* y", "* x\nno bullet", "a * b", "5*3", "  * nested\n    * deeper",
	"*no space", "ends in star *", "trailing\n", "tab *\tx",
}

func condition(kind string) metav1.Condition {
	return metav1.Condition{
		Type:               kind,
		Status:             pick(metav1.ConditionTrue, metav1.ConditionFalse, metav1.ConditionUnknown),
		Reason:             pick("One", "Two", "Three"),
		Message:            pick(messages...),
		LastTransitionTime: metav1.NewTime(epoch.Add(time.Duration(random.Intn(5)) * time.Minute)),
	}
}

func some(kinds []string, chance float64) (list []string) {
	for _, kind := range kinds {
		if random.Float64() < chance {
			list = append(list, kind)
		}
	}
	return list
}

func verdict(c *metav1.Condition, err error) any {
	if err != nil {
		return nil
	}
	verdict := object{"type": c.Type, "status": c.Status, "reason": c.Reason, "message": c.Message}
	if !c.LastTransitionTime.IsZero() {
		verdict["since"] = c.LastTransitionTime
	}
	return verdict
}

func summaries(n int) {
	all := []string{"Ready", "A", "B", "C", "Deleting", "Paused"}
	for range n {
		source := &holder{TypeMeta: metav1.TypeMeta{Kind: "Database"}, name: "db"}
		for _, kind := range some(all, 0.7) {
			source.conditions = append(source.conditions, condition(kind))
		}
		random.Shuffle(len(source.conditions), func(i, j int) {
			source.conditions[i], source.conditions[j] = source.conditions[j], source.conditions[i]
		})
		kinds := some(all, 0.6)
		random.Shuffle(len(kinds), func(i, j int) { kinds[i], kinds[j] = kinds[j], kinds[i] })
		negative := some([]string{"Deleting", "Paused", "C"}, 0.7)
		ignored := some(all, 0.2)
		target := pick("Available", "Available", "Available", "Ready")
		got, err := conditions.NewSummaryCondition(source, target,
			conditions.ForConditionTypes(kinds),
			conditions.NegativePolarityConditionTypes(negative),
			conditions.IgnoreTypesIfMissing(ignored))
		emit(object{"op": "summary", "conditions": source.conditions, "types": kinds, "negative": negative,
			"ignored": ignored, "target": target, "want": verdict(got, err)})
	}
}

func aggregates(n int) {
	for range n {
		var sources []*holder
		var described []object
		// Few messages and kinds make long lists of names, many make long lists of messages.
		said := some([]string{"", "disk is full", "no network", "two\nlines", "* a: b", "late"}, pick(0.2, 0.5, 0.9))
		said = append(said, "down")
		well := random.Intn(5) == 0
		kinds := append(some([]string{"MachinePolicy", "Ingress"}, 0.4), "Machine")
		for i := range random.Intn(16) {
			source := &holder{TypeMeta: metav1.TypeMeta{Kind: pick(kinds...)},
				name: fmt.Sprintf("%s%d", pick("a", "b"), i)}
			source.first = source.Kind == "Machine" && random.Intn(4) == 0
			if well || random.Intn(8) > 0 {
				one := condition("Ready")
				one.Message = pick(said...)
				if well {
					one.Status = metav1.ConditionTrue
				}
				source.conditions = []metav1.Condition{one}
			}
			sources = append(sources, source)
			described = append(described, object{"kind": source.Kind, "name": source.name, "first": source.first,
				"conditions": source.conditions})
		}
		options := []conditions.AggregateOption{conditions.TargetConditionType("AllReady")}
		negative := random.Intn(4) == 0
		if negative {
			options = append(options, conditions.NegativePolarityConditionTypes{"Ready"})
		}
		got, err := conditions.NewAggregateCondition(sources, "Ready", options...)
		emit(object{"op": "aggregate", "sources": described, "negative": negative, "want": verdict(got, err)})
	}
}

// mirrors are made of objects of which only the JSON is known, as those of providers are.
func mirrors(n int) {
	for range n {
		source := &holder{}
		if random.Intn(5) > 0 {
			one := condition("Ready")
			one.Reason = pick(one.Reason, one.Reason, "")
			source.conditions = []metav1.Condition{one}
		}
		text, err := json.Marshal(object{"kind": "Disk", "status": object{"conditions": source.conditions}})
		must(err)
		unread := &unstructured.Unstructured{}
		must(json.Unmarshal(text, &unread.Object))
		got, err := conditions.NewMirrorConditionFromUnstructured(unread, "Ready", conditions.TargetConditionType("DiskReady"))
		emit(object{"op": "mirror", "conditions": source.conditions, "want": verdict(got, err)})
	}
}

func sorts(n int) {
	all := []string{"Available", "Ready", "UpToDate", "RemoteConnectionProbe", "BootstrapConfigReady",
		"InfrastructureReady", "ControlPlaneInitialized", "ControlPlaneAvailable", "WorkersAvailable",
		"CertificatesAvailable", "Initialized", "EtcdClusterHealthy", "ControlPlaneComponentsHealthy", "NodeHealthy",
		"NodeReady", "NodeKubeadmLabelsAndTaintsSet", "EtcdPodHealthy", "EtcdMemberHealthy", "APIServerPodHealthy",
		"ControllerManagerPodHealthy", "SchedulerPodHealthy", "HealthCheckSucceeded", "OwnerRemediated",
		"TopologyReconciled", "Updating", "RollingOut", "Remediating", "ScalingDown", "ScalingUp", "MachinesReady",
		"ControlPlaneMachinesReady", "WorkerMachinesReady", "MachinesUpToDate", "ControlPlaneMachinesUpToDate",
		"WorkerMachinesUpToDate", "Paused", "Deleting", "Stalled", "Reconciling", "Zebra", "a.example/B", "Healthy"}
	for range n {
		kinds := some(all, 0.5)
		random.Shuffle(len(kinds), func(i, j int) { kinds[i], kinds[j] = kinds[j], kinds[i] })
		target := &holder{}
		for _, kind := range kinds {
			conditions.Set(target, metav1.Condition{Type: kind, Status: metav1.ConditionTrue, Reason: "Because"})
		}
		var want []string
		for _, c := range target.conditions {
			want = append(want, c.Type)
		}
		emit(object{"op": "sort", "types": kinds, "want": want})
	}
}

// set is what becomes of a list when conditions are set one after the other at given times.
func sets(n int) {
	for range n {
		target := &holder{}
		var steps []object
		now := epoch
		for range random.Intn(8) + 1 {
			now = now.Add(time.Duration(random.Intn(90)) * time.Second)
			one := condition(pick("A", "B"))
			one.LastTransitionTime = metav1.NewTime(now)
			one.ObservedGeneration = int64(random.Intn(3))
			conditions.Set(target, one, conditions.ConditionSortFunc(func(metav1.Condition, metav1.Condition) bool { return false }))
			steps = append(steps, object{"verdict": verdict(&one, nil), "generation": one.ObservedGeneration, "now": one.LastTransitionTime})
		}
		emit(object{"op": "set", "steps": steps, "want": append([]metav1.Condition{}, target.conditions...)})
	}
}

func names(n int) {
	kind := regexp.MustCompile(`^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])$`)
	reason := regexp.MustCompile(`^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$`)
	for range n {
		var text strings.Builder
		for range random.Intn(7) {
			text.WriteString(pick("a", "B", "7", "a", "b", "C", "a.", "b/", ".", "-", "_", "/", ",", ":", " ", "\n", "é"))
		}
		emit(object{"op": "names", "text": text.String(), "type": kind.MatchString(text.String()), "reason": reason.MatchString(text.String())})
	}
}

func plurals() {
	kinds := strings.Fields(`Machine MachineSet MachinePool MachineDeployment KubeadmControlPlane AWSManagedControlPlane
		Workspace WorkspaceTemplate WorkspaceTemplateApply CAPTCluster CAPTControlPlane Cluster Database Replica Backup
		Policy NetworkPolicy Proxy Identity Registry Directory Factory Gateway Key Ray Buoy Guy Ingress Class
		StorageClass IngressClass Address Status Bus Nexus Virus Box Mailbox Index Vertex Matrix Endpoints Service
		Branch Patch Batch Switch Mesh Hash Cache Volume Repo Scenario Photo Zoo Hero Echo Alias Analysis Basis Axis
		Crisis Child Person Criterion Medium Datum Stadium Leaf Shelf Wolf Knife Safe Wharf Quiz Waltz Buzz Series
		Species Chassis Media Information Equipment DNS CIS Directive Objective Day Tray Lens Secret ConfigMap Pod Job
		CronJob Node Event Lease Role RoleBinding Namespace Certificate Issuer Bucket Table Queue Topic Stack Zone Tenant
		Quota Schema Formula Base House Release Lease Disk Snapshot Image Kernel Process Access Redis Postgres Kafka`)
	for _, kind := range kinds {
		emit(object{"op": "plural", "kind": kind, "want": flect.Pluralize(kind)})
	}
}

func tools(n int, script string) {
	for range n {
		metadata := object{"name": "db", "namespace": "default"}
		if random.Intn(4) > 0 {
			metadata["generation"] = int64(random.Intn(3) + 1)
		}
		if random.Intn(10) == 0 {
			metadata["deletionTimestamp"] = pick("2026-01-01T00:00:00Z", "2026-01-01T00:00:00Z", "")
		}
		status := object{}
		if random.Intn(3) > 0 {
			status["observedGeneration"] = int64(random.Intn(3) + 1)
		}
		if random.Intn(10) == 0 {
			status["failureMessage"] = pick("", "it failed")
		}
		if random.Intn(8) > 0 {
			list := []any{}
			for _, kind := range some([]string{"Ready", "Reconciling", "Stalled", "Paused", "RollingOut", "Available", "ready"}, 0.4) {
				one := map[string]any{"type": kind, "status": pick("True", "False", "Unknown", "True", "False", "true", "")}
				if random.Intn(4) > 0 {
					one["reason"], one["message"] = "Because", "message of "+kind
				}
				if random.Intn(2) == 0 {
					one["observedGeneration"] = int64(random.Intn(3) + 1)
				}
				if random.Intn(4) == 0 {
					one["severity"] = pick("Error", "Warning", "Info")
				}
				list = append(list, one)
			}
			random.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
			status["conditions"] = list
		}
		content := map[string]any{"apiVersion": "example.com/v1", "kind": "Database", "metadata": map[string]any(metadata)}
		if random.Intn(10) > 0 {
			content["status"] = map[string]any(status)
		}
		made := &unstructured.Unstructured{Object: content}
		result, err := kstatus.Compute(made)
		must(err)
		waits := object{}
		for _, text := range []string{"condition=Ready", "condition=ready=false", "condition=Stalled=UNKNOWN", "condition=Available="} {
			waits[text] = waited(made, text)
		}
		line := object{"op": "tools", "object": content, "kstatus": result.Status, "message": result.Message, "waits": waits}
		if metadata["deletionTimestamp"] == nil {
			line["argo"], line["argoMessage"] = health(script, content)
		}
		emit(line)
	}
}

// waited runs kubectl wait against a client that has the object.
func waited(made *unstructured.Unstructured, text string) bool {
	// Nothing is ever asked of this server: the client is replaced below.
	server, config := "http://127.0.0.1:1", genericclioptions.NewConfigFlags(false)
	config.APIServer = &server
	flags := wait.NewWaitFlags(config, genericiooptions.NewTestIOStreamsDiscard())
	flags.ForCondition = []string{text}
	flags.Timeout = 0
	options, err := flags.ToOptions(nil)
	must(err)
	mapping := schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "databases"}
	kinds := map[schema.GroupVersionResource]string{mapping: "DatabaseList"}
	options.DynamicClient = dynamicfake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), kinds, made.DeepCopy())
	options.ResourceFinder = genericclioptions.NewSimpleFakeResourceFinder(&resource.Info{
		Mapping: &meta.RESTMapping{Resource: mapping}, Name: "db", Namespace: "default",
	})
	return options.RunWaitContext(context.Background()) == nil
}

// health runs the script as Argo CD does: with the object as the global `obj`.
func health(script string, content object) (string, string) {
	state := lua.NewState()
	defer state.Close()
	state.SetGlobal("obj", value(state, map[string]any(content)))
	must(state.DoString(script))
	table := state.Get(-1).(*lua.LTable)
	return table.RawGetString("status").String(), table.RawGetString("message").String()
}

func value(state *lua.LState, from any) lua.LValue {
	switch typed := from.(type) {
	case map[string]any:
		table := state.NewTable()
		keys := make([]string, 0, len(typed))
		for key := range typed {
			keys = append(keys, key)
		}
		sort.Strings(keys)
		for _, key := range keys {
			table.RawSetString(key, value(state, typed[key]))
		}
		return table
	case []any:
		table := state.NewTable()
		for _, item := range typed {
			table.Append(value(state, item))
		}
		return table
	case string:
		return lua.LString(typed)
	case int64:
		return lua.LNumber(typed)
	default:
		panic(fmt.Sprintf("no Lua value for %T", from))
	}
}

func main() {
	script, err := os.ReadFile(os.Args[1])
	must(err)
	emit(object{"op": "script", "text": string(script)})
	summaries(150)
	aggregates(150)
	mirrors(60)
	sorts(20)
	sets(60)
	names(250)
	plurals()
	tools(250, string(script))
}
