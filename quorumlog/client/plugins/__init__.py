"""What an application hangs into a client: serializers, callbacks of deliveries, interceptors, traces."""
