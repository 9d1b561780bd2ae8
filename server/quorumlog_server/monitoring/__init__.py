"""What Prometheus and Grafana are given, made from the catalogue of series: rules, dashboards, where to scrape."""
